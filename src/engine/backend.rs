//! llama.cpp's process-wide part: initialised once, before anything else, and never freed.

use super::log::{self, Level};
use crate::error::{Error, Result};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::{LlamaBackendDeviceType, list_llama_ggml_backend_devices};
use llama_cpp_sys_2 as sys;
use std::ffi::CStr;
use std::sync::OnceLock;

/// A processor that models can run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name, `"CPU"` or `"CUDA0"`.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Whether it is a graphics processor.
    pub gpu: bool,
}

/// The processors that models can run on.
///
/// # Errors
///
/// [`Error::Backend`].
pub fn devices() -> Result<Vec<Device>> {
    backend()?;
    Ok(list())
}

/// Proof that llama.cpp is ready.
pub(super) fn backend() -> Result<&'static LlamaBackend> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| {
        log::install();
        #[cfg(feature = "portable")]
        let searched = plugins::load();
        #[cfg(not(feature = "portable"))]
        let searched = "the kernels are linked in";
        let backend = LlamaBackend::init().map_err(|error| {
            format!(
                "{error}; a process can hold llama.cpp once, through this library or on its own"
            )
        })?;
        match list().iter().any(|device| !device.gpu) {
            true => Ok(backend),
            // Dropping it would free llama.cpp's state; a later call must not start it again.
            false => {
                std::mem::forget(backend);
                Err(format!("no CPU kernels for this machine: {searched}"))
            }
        }
    });
    backend.as_ref().map_err(|why| Error::Backend(why.clone()))
}

/// What computes: the kernels that were loaded, by the instructions that they use, and the graphics
/// processors. Where this is the same, so are the bits of what is computed.
pub(super) fn kernels() -> &'static str {
    static KERNELS: OnceLock<String> = OnceLock::new();
    // llama.cpp puts the text together in a place of its own, so it is asked once.
    KERNELS.get_or_init(|| {
        // SAFETY: what it returns ends with a NUL and lives until the next call.
        let features = unsafe { CStr::from_ptr(sys::llama_print_system_info()) };
        let gpus = list().into_iter().filter(|device| device.gpu);
        let gpus: Vec<String> = gpus.map(|gpu| gpu.description).collect();
        format!("{}{}", features.to_string_lossy(), gpus.join(" | "))
    })
}

/// Whether a graphics processor is there.
pub(super) fn has_gpu() -> bool {
    list().iter().any(|device| device.gpu)
}

fn list() -> Vec<Device> {
    list_llama_ggml_backend_devices()
        .into_iter()
        .map(|device| Device {
            gpu: matches!(
                device.device_type,
                LlamaBackendDeviceType::Gpu | LlamaBackendDeviceType::IntegratedGpu
            ),
            name: device.name,
            description: device.description,
        })
        .inspect(|device| log::emit(Level::Debug, &format!("device: {device:?}")))
        .collect()
}

/// ggml's kernels as plugins: one file for each generation of processors, of which the best one
/// that this machine can run is loaded, and one for CUDA.
#[cfg(feature = "portable")]
mod plugins {
    use super::log::{self, Level};
    use std::path::{Path, PathBuf};

    /// Loads the plugins from the first folder that has some; says where it looked.
    pub fn load() -> String {
        let folders = folders();
        for folder in &folders {
            if has_plugins(folder) {
                log::emit(Level::Debug, &format!("kernels from {}", folder.display()));
                llama_cpp_2::llama_backend::load_backends_from_path(folder);
                if let Some(why) = why_not_loaded(&folder.join("libggml-cuda.so")) {
                    log::emit(Level::Warn, &format!("no CUDA, the CPU answers: {why}"));
                }
                break;
            }
        }
        let folders: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
        format!(
            "looked for libggml-cpu-*.so in {}; keep the folder stair-backends beside libstair.so, \
             or name it in the environment variable STAIR_BACKENDS",
            folders.join(", ")
        )
    }

    /// Where plugins may lie: what the environment names; beside this library, in a folder of its
    /// own or, as packages for .NET want it, in the same; and where an installed command finds
    /// them.
    fn folders() -> Vec<PathBuf> {
        let mut folders = Vec::new();
        folders.extend(std::env::var_os("STAIR_BACKENDS").map(PathBuf::from));
        if let Some(own) = own_folder() {
            for folder in [
                "stair-backends",
                ".",
                "../stair-backends",
                "../lib/stair-backends",
            ] {
                folders.push(own.join(folder));
            }
        }
        folders
    }

    fn has_plugins(folder: &Path) -> bool {
        // llama.cpp takes the path as UTF-8.
        let Some(entries) = folder.to_str().and_then(|_| folder.read_dir().ok()) else {
            return false;
        };
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libggml-cpu") || name.starts_with("ggml-cpu")
        })
    }

    /// Why the plugin at `path` could not be loaded, if it is there and could not: ggml, as it is
    /// built for release, keeps that to itself.
    #[cfg(unix)]
    fn why_not_loaded(path: &Path) -> Option<String> {
        use std::ffi::{CStr, CString};
        use std::os::unix::ffi::OsStrExt;

        if !path.exists() {
            return None;
        }
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: the name is NUL-terminated. When ggml has the plugin this only counts it once more;
        // when it loads here and did not there, it does nothing by itself and goes again.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if !handle.is_null() {
            // SAFETY: just opened.
            unsafe { libc::dlclose(handle) };
            return None;
        }
        // SAFETY: what dlerror gives is NULL or lives until this thread's next such call.
        let error = unsafe {
            let error = libc::dlerror();
            if error.is_null() {
                return None;
            }
            CStr::from_ptr(error)
        };
        Some(error.to_string_lossy().into_owned())
    }

    #[cfg(not(unix))]
    fn why_not_loaded(_: &Path) -> Option<String> {
        None
    }

    /// The folder of the library, or of the program, that this code is part of.
    #[cfg(unix)]
    fn own_folder() -> Option<PathBuf> {
        use std::ffi::{CStr, OsStr};
        use std::os::unix::ffi::OsStrExt;

        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: the address is that of a function in this image, and `info` has room.
        let found = unsafe { libc::dladdr(load as *const libc::c_void, info.as_mut_ptr()) };
        if found == 0 {
            return None;
        }
        // SAFETY: dladdr succeeded, so it filled `info`, and the name is NUL-terminated and lives
        // as long as the image is loaded.
        let name = unsafe {
            let info = info.assume_init();
            if info.dli_fname.is_null() {
                return None;
            }
            CStr::from_ptr(info.dli_fname)
        };
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        // For the program itself the name is as it was typed; the kernel knows better.
        let path = match path.is_absolute() {
            true => path.to_path_buf(),
            false => std::env::current_exe().ok()?,
        };
        // A link to the library may stand in another folder than its plugins.
        let path = path.canonicalize().unwrap_or(path);
        path.parent().map(Path::to_path_buf)
    }

    #[cfg(not(unix))]
    fn own_folder() -> Option<PathBuf> {
        let path = std::env::current_exe().ok()?;
        path.parent().map(Path::to_path_buf)
    }

    #[cfg(all(test, unix))]
    mod tests {
        use super::*;

        #[test]
        fn a_plugin_that_cannot_be_loaded_says_why_and_an_absent_one_nothing() {
            let folder = tempfile::tempdir().expect("a folder");
            let plugin = folder.path().join("libggml-cuda.so");
            assert_eq!(why_not_loaded(&plugin), None);
            std::fs::write(&plugin, "no library").expect("writes");
            let why = why_not_loaded(&plugin).expect("a reason");
            assert!(why.contains("libggml-cuda.so"), "{why}");
        }
    }
}
