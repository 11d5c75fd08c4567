//! A GGUF file tensor by tensor, by ggml's own reader and writer: what is in it, what a tensor's
//! numbers are, and the head of another file like it.

use super::backend::backend;
use super::gguf::Header;
use super::log;
use crate::error::{Error, Result};
use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// Numbers that are worked on together, so that memory stays the same for any model.
pub(super) const SLAB: usize = 1 << 24;

/// A tensor in a file.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub name: String,
    kind: sys::ggml_type,
    /// Its sides; the first is the length of a row.
    pub shape: [usize; 4],
    /// Offset of its first byte in the file.
    at: u64,
    /// Its size in bytes.
    pub bytes: usize,
}

impl Tensor {
    /// Numbers in a row.
    pub fn row(&self) -> usize {
        self.shape[0]
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// Its sides without the ones at the end, for a person: `[576, 1536]`.
    pub fn shape_text(&self) -> String {
        let sides = self.shape.iter().rposition(|&side| side != 1);
        format!("{:?}", &self.shape[..=sides.unwrap_or(0)])
    }
}

/// An open GGUF file.
pub(super) struct GgufFile {
    gguf: NonNull<sys::gguf_context>,
    /// ggml's description of the tensors; no data.
    described: NonNull<sys::ggml_context>,
    tensors: Vec<Tensor>,
    path: PathBuf,
    file: File,
}

impl GgufFile {
    /// Opens the file at `path` and checks that its tensors lie inside it.
    ///
    /// # Errors
    ///
    /// As [`Header::read`]; [`Error::ModelCorrupt`] when ggml does not read it.
    pub fn open(path: &Path) -> Result<Self> {
        backend()?;
        Header::read(path)?;
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        let name = c_path(path)?;
        let mut described = std::ptr::null_mut();
        let params = sys::gguf_init_params {
            no_alloc: true,
            ctx: &mut described,
        };
        let (gguf, errors) = log::capture(|| {
            // SAFETY: the path is NUL-terminated and `described` lives during the call.
            unsafe { sys::gguf_init_from_file(name.as_ptr(), params) }
        });
        let corrupt = |why: String| Error::ModelCorrupt {
            path: path.to_path_buf(),
            why,
        };
        let Some(gguf) = NonNull::new(gguf) else {
            return Err(corrupt(format!("ggml cannot read it: {errors}")));
        };
        let Some(described) = NonNull::new(described) else {
            // SAFETY: it was just made, and nothing else holds it.
            unsafe { sys::gguf_free(gguf.as_ptr()) };
            return Err(corrupt("ggml finds no tensors in it".to_owned()));
        };
        let mut opened = Self {
            gguf,
            described,
            tensors: Vec::new(),
            path: path.to_path_buf(),
            file,
        };
        opened.tensors = opened.describe().map_err(corrupt)?;
        Ok(opened)
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its tensors in the file's order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// A text of the metadata; `None` when the key is absent or is no text.
    pub fn text(&self, key: &CStr) -> Option<String> {
        let id = self.key(key, sys::GGUF_TYPE_STRING)?;
        // SAFETY: the key exists and is a text; ggml's text ends with a NUL and is copied.
        let text = unsafe { CStr::from_ptr(sys::gguf_get_val_str(self.gguf.as_ptr(), id)) };
        Some(text.to_string_lossy().into_owned())
    }

    /// A 32-bit float of the metadata.
    pub fn f32(&self, key: &CStr) -> Option<f32> {
        let id = self.key(key, sys::GGUF_TYPE_FLOAT32)?;
        // SAFETY: the key exists and is of this type.
        Some(unsafe { sys::gguf_get_val_f32(self.gguf.as_ptr(), id) })
    }

    /// A 32-bit number of the metadata.
    pub fn u32(&self, key: &CStr) -> Option<u32> {
        let id = self.key(key, sys::GGUF_TYPE_UINT32)?;
        // SAFETY: the key exists and is of this type.
        Some(unsafe { sys::gguf_get_val_u32(self.gguf.as_ptr(), id) })
    }

    /// A 16-bit number of the metadata.
    pub fn u16(&self, key: &CStr) -> Option<u16> {
        let id = self.key(key, sys::GGUF_TYPE_UINT16)?;
        // SAFETY: the key exists and is of this type.
        Some(unsafe { sys::gguf_get_val_u16(self.gguf.as_ptr(), id) })
    }

    /// Whether the metadata has the key, of whatever type.
    pub fn has(&self, key: &CStr) -> bool {
        // SAFETY: the context lives as long as `self`.
        unsafe { sys::gguf_find_key(self.gguf.as_ptr(), key.as_ptr()) >= 0 }
    }

    /// Reads `bytes.len()` bytes of the tensor from its byte `from` on.
    pub fn read(&self, tensor: &Tensor, from: usize, bytes: &mut [u8]) -> Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(tensor.at + from as u64))
            .and_then(|_| file.read_exact(bytes))
            .map_err(|error| Error::io("read", &self.path, error))
    }

    /// The numbers of `count` rows of the tensor from row `first` on, whatever their type.
    pub fn rows(&self, tensor: &Tensor, first: usize, count: usize) -> Result<Vec<f32>> {
        let row_bytes = tensor.bytes / tensor.rows().max(1);
        let numbers = count * tensor.row();
        let mut values = vec![0f32; numbers];
        if tensor.kind == sys::GGML_TYPE_F32 {
            self.read(
                tensor,
                first * row_bytes,
                bytemuck::cast_slice_mut(&mut values),
            )?;
            return Ok(values);
        }
        let Some(to_float) = to_float(tensor) else {
            return Err(Error::ModelLoad {
                path: self.path.clone(),
                why: format!("ggml cannot turn the tensor {:?} into floats", tensor.name),
            });
        };
        // Words of eight bytes, because blocks of numbers have an alignment.
        let mut words = vec![0u64; (count * row_bytes).div_ceil(8)];
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..count * row_bytes];
        self.read(tensor, first * row_bytes, bytes)?;
        // SAFETY: `bytes` holds `count` whole rows of this type, and `values` as many numbers.
        unsafe { to_float(bytes.as_ptr().cast(), values.as_mut_ptr(), numbers as i64) };
        Ok(values)
    }

    /// Whether no number of the tensor is further from 0 than `largest`, and none is none. True of
    /// types that are no floats to ggml.
    pub fn is_within(&self, tensor: &Tensor, largest: f32) -> Result<bool> {
        if tensor.kind != sys::GGML_TYPE_F32 && to_float(tensor).is_none() {
            return Ok(true);
        }
        let slab = (SLAB / tensor.row().max(1)).max(1);
        for first in (0..tensor.rows()).step_by(slab) {
            let count = slab.min(tensor.rows() - first);
            let numbers = self.rows(tensor, first, count)?;
            if !numbers.iter().all(|number| number.abs() <= largest) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn describe(&self) -> std::result::Result<Vec<Tensor>, String> {
        let gguf = self.gguf.as_ptr();
        // SAFETY: the context lives as long as `self`, and ids are below the number of tensors.
        unsafe {
            let data = sys::gguf_get_data_offset(gguf) as u64;
            (0..sys::gguf_get_n_tensors(gguf))
                .map(|id| {
                    let name = CStr::from_ptr(sys::gguf_get_tensor_name(gguf, id));
                    let name = name.to_string_lossy().into_owned();
                    let sides = std::slice::from_raw_parts(sys::gguf_get_tensor_ne(gguf, id), 4);
                    let mut shape = [0; 4];
                    for (side, &found) in shape.iter_mut().zip(sides) {
                        *side = usize::try_from(found)
                            .map_err(|_| format!("tensor {name:?} has a side of {found}"))?;
                    }
                    Ok(Tensor {
                        name,
                        kind: sys::gguf_get_tensor_type(gguf, id),
                        shape,
                        at: data + sys::gguf_get_tensor_offset(gguf, id) as u64,
                        bytes: sys::gguf_get_tensor_size(gguf, id),
                    })
                })
                .collect()
        }
    }

    fn key(&self, key: &CStr, kind: sys::gguf_type) -> Option<i64> {
        // SAFETY: the context lives as long as `self`; a key's type is asked for only if it is
        // there.
        unsafe {
            let id = sys::gguf_find_key(self.gguf.as_ptr(), key.as_ptr());
            (id >= 0 && sys::gguf_get_kv_type(self.gguf.as_ptr(), id) == kind).then_some(id)
        }
    }
}

impl Drop for GgufFile {
    fn drop(&mut self) {
        // SAFETY: both were made by `gguf_init_from_file`, and nothing else holds them.
        unsafe {
            sys::gguf_free(self.gguf.as_ptr());
            sys::ggml_free(self.described.as_ptr());
        }
    }
}

/// How ggml turns numbers of the tensor's type into floats.
fn to_float(tensor: &Tensor) -> sys::ggml_to_float_t {
    // SAFETY: the type is one that ggml knows, since it read the tensor's description.
    let traits = unsafe { sys::ggml_get_type_traits(tensor.kind).as_ref() };
    traits.and_then(|traits| traits.to_float)
}

/// The head of a new file, with the metadata of another one.
pub(super) struct Head(NonNull<sys::gguf_context>);

impl Head {
    /// All metadata of `base`, and its tensors, of which `as_f32` says which become 32-bit floats.
    pub fn like(base: &GgufFile, as_f32: impl Fn(&Tensor) -> bool) -> Result<Self> {
        // SAFETY: nothing is asked of the caller.
        let head = NonNull::new(unsafe { sys::gguf_init_empty() });
        let head = Self(head.ok_or_else(|| Error::OutOfMemory("a GGUF head".to_owned()))?);
        let gguf = head.0.as_ptr();
        // SAFETY: both contexts live; the metadata was read by ggml, so its types are known to it.
        // The alignment is the default, which the layout is made for.
        unsafe {
            sys::gguf_set_kv(gguf, base.gguf.as_ptr());
            sys::gguf_remove_key(gguf, c"general.alignment".as_ptr());
        }
        for tensor in base.tensors() {
            let name = c_text(&tensor.name)?;
            // SAFETY: the description belongs to `base`, which lives, and ggml copies it. Names
            // are unique, as ggml has checked when it read them.
            unsafe {
                let found = sys::ggml_get_tensor(base.described.as_ptr(), name.as_ptr());
                if found.is_null() {
                    let what = format!("ggml lost the tensor {:?}", tensor.name);
                    return Err(Error::Internal(what));
                }
                sys::gguf_add_tensor(gguf, found);
                if as_f32(tensor) {
                    sys::gguf_set_tensor_type(gguf, name.as_ptr(), sys::GGML_TYPE_F32);
                }
            }
        }
        Ok(head)
    }

    /// Sets a text of the metadata.
    pub fn set_text(&mut self, key: &CStr, value: &str) -> Result<()> {
        let value = c_text(value)?;
        // SAFETY: both are NUL-terminated, and ggml copies them.
        unsafe { sys::gguf_set_val_str(self.0.as_ptr(), key.as_ptr(), value.as_ptr()) };
        Ok(())
    }

    /// How many zeros follow a tensor of `bytes` bytes, up to where the next one begins.
    pub fn padding(&self, bytes: usize) -> usize {
        // SAFETY: the context lives.
        let alignment = unsafe { sys::gguf_get_alignment(self.0.as_ptr()) };
        bytes.next_multiple_of(alignment) - bytes
    }

    /// The bytes before the first tensor.
    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: the context lives, and the buffer has the size that ggml names.
        unsafe {
            let mut bytes = vec![0u8; sys::gguf_get_meta_size(self.0.as_ptr())];
            sys::gguf_get_meta_data(self.0.as_ptr(), bytes.as_mut_ptr().cast());
            bytes
        }
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        // SAFETY: it was made by `gguf_init_empty`, and nothing else holds it.
        unsafe { sys::gguf_free(self.0.as_ptr()) };
    }
}

fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::Internal(format!("the text {text:?} has a NUL")))
}

pub(super) fn c_path(path: &Path) -> Result<CString> {
    let text = path.to_str().ok_or_else(|| {
        Error::InvalidArgument(format!(
            "the path {} is not UTF-8: rename it",
            path.display()
        ))
    })?;
    CString::new(text)
        .map_err(|_| Error::InvalidArgument(format!("the path {text:?} has a NUL: rename it")))
}
