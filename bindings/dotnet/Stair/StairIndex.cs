using System;
using System.Runtime.InteropServices;

namespace Stair
{
    /// <summary>The formats that an index can be built from.</summary>
    public enum DocumentFormat
    {
        /// <summary>Markdown: the headings are the table of contents.</summary>
        Markdown = 1,

        /// <summary>A <c>toc.json</c>.</summary>
        TableOfContentsJson = 2,
    }

    /// <summary>How to build an index. The defaults suit.</summary>
    public sealed class BuildOptions
    {
        /// <summary>The format of the document.</summary>
        public DocumentFormat Format { get; set; } = DocumentFormat.Markdown;

        /// <summary>Leave the sections' texts out: a smaller index, and hits without text.</summary>
        public bool OmitText { get; set; }

        /// <summary>Keep cover, copyright and contents as sections.</summary>
        public bool KeepFrontMatter { get; set; }

        /// <summary>
        /// Questions that sections are known to answer: the text of a file of questions, a JSON object
        /// with <c>id</c>, <c>query</c>, <c>section</c> and <c>split</c> a line. Their words then count
        /// for their sections in every lexical score, and can be read in the index. Null for none.
        /// </summary>
        public string Questions { get; set; }

        /// <summary>The split of them to take.</summary>
        public string Split { get; set; } = "train";

        internal Native.BuildOptions ToNative()
        {
            Native.BuildOptions options;
            StairException.ThrowIfFailed(
                Native.stair_build_options_init(out options, (UIntPtr)Native.SizeOf<Native.BuildOptions>()),
                IntPtr.Zero);
            options.Format = Native.Unsigned((int)Format, nameof(Format));
            options.OmitText = OmitText ? 1u : 0;
            options.KeepFrontMatter = KeepFrontMatter ? 1u : 0;
            return options;
        }
    }

    /// <summary>What an index says of itself.</summary>
    public sealed class IndexInfo
    {
        internal IndexInfo(Native.IndexInfo info)
        {
            Title = Utf8.Copy(info.Title, info.TitleLen);
            Sections = checked((int)info.Sections);
            Leaves = checked((int)info.Leaves);
            TrieNodes = checked((int)info.TrieNodes);
            LongestTitle = checked((int)info.LongestTitle);
            PrefixTokens = checked((int)info.PrefixTokens);
            VocabularySize = checked((int)info.VocabSize);
            HasText = info.HasText != 0;
            Fingerprint = info.Fingerprint;
            Bytes = checked((long)info.Bytes);
            FormatVersion = new Version(checked((int)info.VersionMajor), checked((int)info.VersionMinor));
        }

        /// <summary>The document's title; null from <see cref="StairIndex.Peek"/>.</summary>
        public string Title { get; }

        /// <summary>All sections. Their ids are 0 up to this number.</summary>
        public int Sections { get; }

        /// <summary>The sections without subsections: what can be retrieved.</summary>
        public int Leaves { get; }

        /// <summary>Nodes of the token trie.</summary>
        public int TrieNodes { get; }

        /// <summary>Tokens of the longest title.</summary>
        public int LongestTitle { get; }

        /// <summary>Tokens of the prompt before the question, the table of contents above all.</summary>
        public int PrefixTokens { get; }

        /// <summary>Tokens in the vocabulary that the index was built for.</summary>
        public int VocabularySize { get; }

        /// <summary>Whether the index holds the sections' texts.</summary>
        public bool HasText { get; }

        /// <summary>The fingerprint of the vocabulary that the index was built for.</summary>
        public ulong Fingerprint { get; }

        /// <summary>The size of the index in bytes.</summary>
        public long Bytes { get; }

        /// <summary>The version of the file format.</summary>
        public Version FormatVersion { get; }
    }

    /// <summary>A section of a document.</summary>
    public sealed class Section
    {
        internal Section(Native.Section section)
        {
            Id = checked((int)section.Id);
            Parent = checked((int?)Native.Optional(section.Parent));
            Depth = checked((int)section.Depth);
            IsLeaf = section.Leaf != 0;
            Page = Native.Optional(section.Page);
            SpanStart = checked((long)section.SpanStart);
            SpanEnd = checked((long)section.SpanEnd);
            Number = Utf8.Copy(section.Number, section.NumberLen) ?? "";
            Title = Utf8.Copy(section.Title, section.TitleLen) ?? "";
            Text = Utf8.Copy(section.Text, section.TextLen);
        }

        /// <summary>The section's id, in document order from 0.</summary>
        public int Id { get; }

        /// <summary>The id of the section above; null at the top.</summary>
        public int? Parent { get; }

        /// <summary>The sections above it, counted.</summary>
        public int Depth { get; }

        /// <summary>Whether it has no subsections.</summary>
        public bool IsLeaf { get; }

        /// <summary>The page in the document; null where it has none.</summary>
        public long? Page { get; }

        /// <summary>Where the section begins in the document, in UTF-8 bytes.</summary>
        public long SpanStart { get; }

        /// <summary>Where it ends, in UTF-8 bytes.</summary>
        public long SpanEnd { get; }

        /// <summary>The number, for example <c>4.2</c>; empty where it has none.</summary>
        public string Number { get; }

        /// <summary>The title without the number.</summary>
        public string Title { get; }

        /// <summary>The text; null where the index does not keep it.</summary>
        public string Text { get; }
    }

    /// <summary>
    /// An index of one document's table of contents. Any number of threads and retrievers may share
    /// it. It may be disposed before the retrievers that use it.
    /// </summary>
    public sealed class StairIndex : IDisposable
    {
        private readonly IndexHandle handle;

        private StairIndex(IndexHandle handle)
        {
            this.handle = handle;
            try
            {
                var info = NewInfo();
                IntPtr error;
                StairException.ThrowIfFailed(Native.stair_index_get_info(handle, ref info, out error), error);
                Info = new IndexInfo(info);
            }
            catch
            {
                handle.Dispose();
                throw;
            }
        }

        /// <summary>What the index says of itself. It can be read after Dispose too.</summary>
        public IndexInfo Info { get; }

        internal IndexHandle Handle
        {
            get { return NativeHandle.Open(handle, nameof(StairIndex)); }
        }

        /// <summary>
        /// Opens an index file and checks all of it. The file is mapped: replace it by renaming
        /// another over it, never by writing into it.
        /// </summary>
        /// <param name="path">The file.</param>
        /// <param name="copy">
        /// Read the file into memory in place of mapping it: for network drives, and for files that
        /// may be truncated while they are used, which would end the process.
        /// </param>
        /// <returns>The index, to be disposed.</returns>
        /// <exception cref="StairException">The file is missing or not a usable index.</exception>
        public static StairIndex Open(string path, bool copy = false)
        {
            StairLibrary.EnsureCompatible();
            var utf8 = Utf8.Required(path, nameof(path));
            IndexHandle handle;
            IntPtr error;
            StairException.ThrowIfFailed(
                Native.stair_index_open(utf8.Bytes, utf8.Length, copy ? Native.IndexCopy : 0, out handle, out error),
                error);
            return new StairIndex(handle);
        }

        /// <summary>Opens an index from the bytes of its file, which are copied.</summary>
        /// <param name="data">The whole file.</param>
        /// <returns>The index, to be disposed.</returns>
        /// <exception cref="StairException">The bytes are not a usable index.</exception>
        public static StairIndex Open(byte[] data)
        {
            if (data == null)
            {
                throw new ArgumentNullException(nameof(data));
            }
            StairLibrary.EnsureCompatible();
            IndexHandle handle;
            IntPtr error;
            StairException.ThrowIfFailed(
                Native.stair_index_open_buffer(data, (UIntPtr)(uint)data.Length, out handle, out error), error);
            return new StairIndex(handle);
        }

        /// <summary>Builds an index of a document in memory.</summary>
        /// <param name="model">The model, or only its vocabulary, that will answer from the index.</param>
        /// <param name="document">The document.</param>
        /// <param name="title">The document's title; null takes it from the document.</param>
        /// <param name="options">How; null for the defaults.</param>
        /// <returns>The index, to be disposed.</returns>
        /// <exception cref="StairException">The document cannot be indexed.</exception>
        public static StairIndex Build(
            StairModel model, string document, string title = null, BuildOptions options = null)
        {
            if (model == null)
            {
                throw new ArgumentNullException(nameof(model));
            }
            var text = Utf8.Required(document, nameof(document));
            var name = new Utf8(title);
            var native = (options ?? new BuildOptions()).ToNative();
            var questions = new Utf8(options?.Questions);
            var split = new Utf8(options?.Split);
            IndexHandle handle;
            IntPtr error;
            // The call reads both where they lie. A null pins nothing and has no address.
            var pinned = new[]
            {
                GCHandle.Alloc(questions.Bytes, GCHandleType.Pinned),
                GCHandle.Alloc(split.Bytes, GCHandleType.Pinned),
            };
            try
            {
                native.Questions = pinned[0].AddrOfPinnedObject();
                native.QuestionsLen = questions.Length;
                native.Split = pinned[1].AddrOfPinnedObject();
                native.SplitLen = split.Length;
                StairException.ThrowIfFailed(
                    Native.stair_index_build(
                        model.Handle, text.Bytes, text.Length, name.Bytes, name.Length, ref native,
                        out handle, out error),
                    error);
            }
            finally
            {
                pinned[0].Free();
                pinned[1].Free();
            }
            return new StairIndex(handle);
        }

        /// <summary>Reads what an index file says of itself, from its header alone.</summary>
        /// <param name="path">The file.</param>
        /// <returns>The information, without the title.</returns>
        /// <exception cref="StairException">The file is missing or not an index.</exception>
        public static IndexInfo Peek(string path)
        {
            StairLibrary.EnsureCompatible();
            var utf8 = Utf8.Required(path, nameof(path));
            var info = NewInfo();
            IntPtr error;
            StairException.ThrowIfFailed(
                Native.stair_index_peek(utf8.Bytes, utf8.Length, ref info, out error), error);
            return new IndexInfo(info);
        }

        /// <summary>Writes the index to a file, which appears whole or not at all.</summary>
        /// <param name="path">The file; one that exists is replaced.</param>
        /// <exception cref="StairException">The file cannot be written.</exception>
        public void Save(string path)
        {
            var utf8 = Utf8.Required(path, nameof(path));
            IntPtr error;
            StairException.ThrowIfFailed(
                Native.stair_index_save(Handle, utf8.Bytes, utf8.Length, out error), error);
        }

        /// <summary>Copies a section out of the index.</summary>
        /// <param name="id">The section's id, from 0.</param>
        /// <returns>The section.</returns>
        /// <exception cref="StairException">There is no such section.</exception>
        public Section GetSection(int id)
        {
            // The texts belong to the index: hold it until they are copied.
            var index = Handle;
            bool held = false;
            try
            {
                index.DangerousAddRef(ref held);
                var section = new Native.Section { StructSize = Native.SizeOf<Native.Section>() };
                IntPtr error;
                StairException.ThrowIfFailed(
                    Native.stair_index_section(index, Native.Unsigned(id, nameof(id)), ref section, out error),
                    error);
                return new Section(section);
            }
            finally
            {
                if (held)
                {
                    index.DangerousRelease();
                }
            }
        }

        /// <summary>Lets go of the index. More than once is harmless.</summary>
        public void Dispose()
        {
            handle.Dispose();
        }

        private static Native.IndexInfo NewInfo()
        {
            return new Native.IndexInfo { StructSize = Native.SizeOf<Native.IndexInfo>() };
        }
    }
}
