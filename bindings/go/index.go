package stair

// #cgo noescape go_index_get_info
// #cgo nocallback go_index_get_info
// #cgo noescape go_index_section
// #cgo nocallback go_index_section
// #include "shim.h"
import "C"

// An Index is one document's table of contents, ready to be searched, and the sections' text. It
// is immutable and shared by any number of retrievers.
type Index struct {
	handle *handle
}

// An IndexInfo describes an index.
type IndexInfo struct {
	// Title is the document's title. [PeekIndex] leaves it empty.
	Title string
	// Sections is the number of sections. Their ids are 0 to Sections-1, in document order.
	Sections int
	// Leaves is the number of sections without subsections: those that can be found.
	Leaves int
	// HasText says whether the sections' text is in the index.
	HasText bool
	// TrieNodes is the number of nodes of the tree of titles.
	TrieNodes int
	// LongestTitle is the number of tokens of the longest title.
	LongestTitle int
	// PrefixTokens is the number of tokens of the table of contents as the model reads it.
	PrefixTokens int
	// VocabSize is the number of tokens of the vocabulary that the index was built for.
	VocabSize int
	// Fingerprint identifies that vocabulary. A model must have the same.
	Fingerprint uint64
	// Bytes is the size of the index.
	Bytes uint64
	// VersionMajor and VersionMinor are the version of the file format.
	VersionMajor, VersionMinor int
}

// A Section is one heading of the document and what stands under it.
type Section struct {
	// ID is the section's place in document order, from 0.
	ID int
	// Parent is the id of the section that this one is part of, nil for none.
	Parent *int
	// Depth is the number of sections that this one is part of: 0 at the top.
	Depth int
	// Leaf says that the section has no subsections, so that it can be found.
	Leaf bool
	// Number is the section's number, as in "4.2". It may be empty.
	Number string
	// Title is the heading without the number.
	Title string
	// Page is the page on which the section begins, nil if that is not known.
	Page *int
	// Span is the section's place in the document, heading and subsections included. It is empty
	// if that is not known.
	Span Span
	// Text is the section's own text, without heading and subsections. It is empty if texts were
	// not kept in the index.
	Text string
}

// A Span is a range of bytes of a document: document[Start:End].
type Span struct {
	Start, End int
}

// A Format is the kind of a document.
type Format uint32

// The formats.
const (
	// FormatMarkdown is Markdown; the headings are the table of contents.
	FormatMarkdown Format = C.STAIR_FORMAT_MARKDOWN
	// FormatTOCJSON is a table of contents in JSON.
	FormatTOCJSON Format = C.STAIR_FORMAT_TOC_JSON
)

// A BuildOption changes how [BuildIndex] reads a document.
type BuildOption func(*buildOptions)

type buildOptions struct {
	native       C.stair_build_options
	title        *C.char
	len          C.size_t
	questions    *C.char
	questionsLen C.size_t
	split        *C.char
	splitLen     C.size_t
}

// WithTitle gives the document a title. Without it, the document's own is taken.
func WithTitle(title string) BuildOption {
	return func(o *buildOptions) { o.title, o.len = cText(title) }
}

// WithFormat says the document's format. Without it, it is [FormatMarkdown].
func WithFormat(format Format) BuildOption {
	return func(o *buildOptions) { o.native.format = C.uint32_t(format) }
}

// WithoutText leaves the sections' text out of the index.
func WithoutText() BuildOption {
	return func(o *buildOptions) { o.native.omit_text = 1 }
}

// WithFrontMatter keeps cover, copyright and contents as sections, which are left out otherwise.
func WithFrontMatter() BuildOption {
	return func(o *buildOptions) { o.native.keep_front_matter = 1 }
}

// WithQuestions gives questions that sections are known to answer: the text of a file of questions, a
// JSON object with id, query, section and split a line, and the split of them to take, as in "train".
// Their words then count for their sections in every lexical score, and can be read in the index.
func WithQuestions(questions []byte, split string) BuildOption {
	return func(o *buildOptions) {
		bytes, n := cBytes(questions)
		o.questions, o.questionsLen = (*C.char)(bytes), n
		o.split, o.splitLen = cText(split)
	}
}

// OpenIndex maps an index file and checks all of it. While the index is open, replace the file only
// by renaming another over it, as [Index.Save] does: if it is truncated, the process ends.
func OpenIndex(path string) (*Index, error) {
	return openIndex(path, 0)
}

// OpenIndexCopy reads an index file into memory and checks all of it: for network drives, and for
// files that may be changed.
func OpenIndexCopy(path string) (*Index, error) {
	return openIndex(path, C.STAIR_INDEX_COPY)
}

func openIndex(path string, flags C.uint32_t) (*Index, error) {
	if errABI != nil {
		return nil, errABI
	}
	text, n := cText(path)
	return newIndex(C.go_index_open(text, n, flags))
}

// OpenIndexBuffer copies an index that is in memory and checks all of it.
func OpenIndexBuffer(data []byte) (*Index, error) {
	if errABI != nil {
		return nil, errABI
	}
	bytes, n := cBytes(data)
	return newIndex(C.go_index_open_buffer((*C.uint8_t)(bytes), n))
}

// BuildIndex makes the index of a document for a model's vocabulary.
func BuildIndex(model *Model, document []byte, options ...BuildOption) (*Index, error) {
	native, err := model.acquire()
	if err != nil {
		return nil, err
	}
	defer model.handle.release()
	var o buildOptions
	C.stair_build_options_init(&o.native, C.sizeof_stair_build_options)
	for _, option := range options {
		option(&o)
	}
	bytes, n := cBytes(document)
	build := o.native // by itself: a struct given to C must not hold Go pointers
	return newIndex(C.go_index_build(C.go_handle(native), (*C.char)(bytes), n, o.title, o.len, &build,
		o.questions, o.questionsLen, o.split, o.splitLen))
}

func newIndex(reply C.go_reply) (*Index, error) {
	native, err := made(reply)
	if err != nil {
		return nil, err
	}
	h := &handle{kind: "index", native: native, free: func(native uintptr) {
		C.go_index_free(C.go_handle(native))
	}}
	return guard(&Index{h}, h), nil
}

// PeekIndex describes an index file by its header alone: cheap, and not checked as [OpenIndex]
// checks.
func PeekIndex(path string) (IndexInfo, error) {
	if errABI != nil {
		return IndexInfo{}, errABI
	}
	info := C.stair_index_info{struct_size: C.sizeof_stair_index_info}
	text, n := cText(path)
	if err := failed(C.go_index_peek(text, n, &info)); err != nil {
		return IndexInfo{}, err
	}
	return indexInfo(&info), nil
}

// Info describes the index.
func (x *Index) Info() (IndexInfo, error) {
	native, err := x.acquire()
	if err != nil {
		return IndexInfo{}, err
	}
	defer x.handle.release()
	info := C.stair_index_info{struct_size: C.sizeof_stair_index_info}
	if err := failed(C.go_index_get_info(C.go_handle(native), &info)); err != nil {
		return IndexInfo{}, err
	}
	return indexInfo(&info), nil
}

func indexInfo(info *C.stair_index_info) IndexInfo {
	return IndexInfo{
		Title:        goText(info.title, info.title_len),
		Sections:     int(info.sections),
		Leaves:       int(info.leaves),
		HasText:      info.has_text != 0,
		TrieNodes:    int(info.trie_nodes),
		LongestTitle: int(info.longest_title),
		PrefixTokens: int(info.prefix_tokens),
		VocabSize:    int(info.vocab_size),
		Fingerprint:  uint64(info.fingerprint),
		Bytes:        uint64(info.bytes),
		VersionMajor: int(info.version_major),
		VersionMinor: int(info.version_minor),
	}
}

// Section returns the section with an id from 0 to Sections-1.
func (x *Index) Section(id int) (Section, error) {
	native, err := x.acquire()
	if err != nil {
		return Section{}, err
	}
	defer x.handle.release()
	s := C.stair_section{struct_size: C.sizeof_stair_section}
	if err := failed(C.go_index_section(C.go_handle(native), count(id), &s)); err != nil {
		return Section{}, err
	}
	section := Section{
		ID:     int(s.id),
		Depth:  int(s.depth),
		Leaf:   s.leaf != 0,
		Number: goText(s.number, s.number_len),
		Title:  goText(s.title, s.title_len),
		Page:   page(s.page),
		Span:   Span{int(s.span_start), int(s.span_end)},
		Text:   goText(s.text, s.text_len),
	}
	if s.parent != C.STAIR_NONE {
		parent := int(s.parent)
		section.Parent = &parent
	}
	return section, nil
}

// Save writes the index to a file, which it replaces in one step if there is one.
func (x *Index) Save(path string) error {
	native, err := x.acquire()
	if err != nil {
		return err
	}
	defer x.handle.release()
	text, n := cText(path)
	return failed(C.go_index_save(C.go_handle(native), text, n))
}

// Close releases the index. Retrievers made of it are not disturbed. It always returns nil.
func (x *Index) Close() error {
	if x != nil {
		x.handle.close()
	}
	return nil
}

// acquire is for an index that may be nil.
func (x *Index) acquire() (uintptr, error) {
	if x == nil {
		return 0, nilError("index")
	}
	return x.handle.acquire()
}
