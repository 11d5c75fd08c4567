//! Gives `libstair.so` its soname, and lays llama.cpp's libraries where the library and the
//! programs of this build find them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target_os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    describe();
    if target_os == "linux" {
        let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libstair.so.{major}");
        // Unloading would leave llama.cpp's threads and handlers without code.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    if env::var_os("CARGO_FEATURE_PORTABLE").is_some() {
        portable(&target_os);
    }
}

/// What `stair_build_info` says of this build.
fn describe() {
    let target = env::var("TARGET").unwrap_or_default();
    let features = ["engine", "portable", "cuda", "building"];
    let on =
        |feature: &&str| env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some();
    let features: Vec<&str> = features.into_iter().filter(on).collect();
    println!("cargo:rustc-env=STAIR_TARGET={target}");
    println!("cargo:rustc-env=STAIR_FEATURES={}", features.join(" "));
}

/// Links against llama.cpp's shared libraries in `stair-backends`, a folder beside the library, and
/// fills that folder.
fn portable(target_os: &str) {
    if target_os == "linux" {
        // The old kind of search path (DT_RPATH) also serves the libraries that these libraries
        // need, and comes before LD_LIBRARY_PATH, so that another program's ggml is not taken for
        // ours.
        let folders = [
            "$ORIGIN/stair-backends",
            "$ORIGIN",
            "$ORIGIN/../stair-backends",
            "$ORIGIN/../lib/stair-backends",
        ];
        println!(
            "cargo:rustc-link-arg=-Wl,--disable-new-dtags,-rpath,{}",
            folders.join(":")
        );
    }
    let (Some(plugins), Some(root)) = (
        env::var_os("DEP_LLAMA_BACKENDS_DIR"),
        env::var_os("DEP_LLAMA_ROOT"),
    ) else {
        println!("cargo:warning=llama-cpp-sys-2 does not say where it built its plugins");
        return;
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // OUT_DIR is <profile folder>/build/<package>/out.
    let Some(profile) = out.ancestors().nth(3) else {
        return;
    };
    let target = profile.join("stair-backends");
    let done = fill(&target, Path::new(&plugins), &Path::new(&root).join("lib"));
    let done = done.and_then(|()| match target_os {
        "linux" => carry_openmp(&target),
        _ => Ok(()),
    });
    if let Err(error) = done {
        println!("cargo:warning=cannot fill {}: {error}", target.display());
    }
}

/// Lays the compiler's OpenMP library beside the plugins, which need it: not every machine has one.
fn carry_openmp(target: &Path) -> io::Result<()> {
    const NAME: &str = "libgomp.so.1";
    println!("cargo:rerun-if-env-changed=CC");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler)
        .arg(format!("-print-file-name={NAME}"))
        .output()?;
    let path = String::from_utf8_lossy(&output.stdout);
    // A compiler that does not have it prints the bare name.
    let path = Path::new(path.trim());
    if !path.is_absolute() {
        let what = format!("the C compiler does not say where {NAME} is");
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    let target = target.join(NAME);
    if target.exists() {
        fs::remove_file(&target)?;
    }
    // Never a link: this file is the system's.
    fs::copy(path, &target).map(|_| ())
}

fn fill(target: &Path, plugins: &Path, libraries: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(plugins)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // Its AMX kernels die with SIGILL on machines whose system does not grant AMX; the next
        // best plugin is nearly as fast.
        if name.contains("sapphirerapids") {
            continue;
        }
        replace(&path, &target.join(name))?;
    }
    // The program loader asks for the names with one number.
    for entry in fs::read_dir(libraries)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let versions = name.split(".so.").nth(1).map(|v| v.split('.').count());
        if versions == Some(1) && !name.contains("common") {
            replace(&fs::canonicalize(&path)?, &target.join(name))?;
        }
    }
    Ok(())
}

fn replace(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_file(to)?;
    }
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(|_| ()))
}
