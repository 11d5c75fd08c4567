using System;

namespace Stair
{
    /// <summary>
    /// The kinds of errors, with the same numbers and names in every language. A later version of
    /// the library may report more.
    /// </summary>
    public enum StairErrorCode
    {
        /// <summary>An argument is outside its documented range.</summary>
        InvalidArgument = 100,

        /// <summary>A pointer that must not be NULL is NULL.</summary>
        NullPointer = 101,

        /// <summary>A text is not UTF-8, or is a string with an unpaired surrogate.</summary>
        InvalidUtf8 = 102,

        /// <summary>A question contains a NUL character.</summary>
        NulInQuestion = 103,

        /// <summary>A question has no visible character.</summary>
        EmptyQuestion = 104,

        /// <summary>A question has more tokens than the room kept for it.</summary>
        QuestionTooLong = 105,

        /// <summary>The number of hits asked for is 0 or above the number of leaves.</summary>
        InvalidK = 106,

        /// <summary>The size of a struct is not one that this library knows.</summary>
        StructSize = 107,

        /// <summary>A handle was never given out, was freed, or is of another kind.</summary>
        InvalidHandle = 108,

        /// <summary>A file could not be read or written.</summary>
        Io = 200,

        /// <summary>A file does not exist.</summary>
        NotFound = 201,

        /// <summary>The file system refused access.</summary>
        PermissionDenied = 202,

        /// <summary>A path names something that is not a regular file.</summary>
        NotAFile = 203,

        /// <summary>A document cannot be read as its format.</summary>
        Document = 300,

        /// <summary>A document has no headings, so there is nothing to retrieve.</summary>
        NoHeadings = 301,

        /// <summary>A prompt template is not usable.</summary>
        Template = 302,

        /// <summary>A <c>tokenizer.json</c> is not usable.</summary>
        Tokenizer = 303,

        /// <summary>A title's tokens depend on what stands before it.</summary>
        UnstableBoundary = 304,

        /// <summary>A document is beyond a limit of the index format.</summary>
        TooLarge = 305,

        /// <summary>A file is not a <c>.stair</c> index.</summary>
        NotAnIndex = 310,

        /// <summary>An index was written in a version of the format that this library does not read.</summary>
        IndexVersion = 311,

        /// <summary>An index is truncated or damaged.</summary>
        IndexCorrupt = 312,

        /// <summary>A file of questions is not usable.</summary>
        Questions = 320,

        /// <summary>A file is not a GGUF model.</summary>
        NotAModel = 400,

        /// <summary>A model file is truncated or damaged.</summary>
        ModelCorrupt = 401,

        /// <summary>A model's architecture is unknown, or does not generate text.</summary>
        ModelArchitecture = 402,

        /// <summary>A model file has no usable vocabulary.</summary>
        ModelVocabulary = 403,

        /// <summary>llama.cpp refused a model for a reason of its own.</summary>
        ModelLoad = 404,

        /// <summary>An index was built for another vocabulary.</summary>
        VocabularyMismatch = 405,

        /// <summary>No compute backend could be loaded.</summary>
        Backend = 406,

        /// <summary>An adapter is not one, is damaged, or does not belong to the model.</summary>
        Adapter = 407,

        /// <summary>The context is too small for the table of contents, a question and the search.</summary>
        ContextTooSmall = 500,

        /// <summary>
        /// The caller cancelled. Methods that take a token throw
        /// <see cref="OperationCanceledException"/> for it.
        /// </summary>
        Cancelled = 501,

        /// <summary>The deadline passed.</summary>
        Timeout = 502,

        /// <summary>Memory ran out.</summary>
        OutOfMemory = 503,

        /// <summary>llama.cpp failed to decode.</summary>
        Decode = 504,

        /// <summary>The retriever was closed.</summary>
        Closed = 505,

        /// <summary>Too many questions wait for the retriever already.</summary>
        Busy = 506,

        /// <summary>The library contradicted itself; please report it.</summary>
        Internal = 900,

        /// <summary>The library panicked; the panic was caught at the C boundary.</summary>
        Panic = 901,
    }

    /// <summary>An error of libstair. The message says the cause and the remedy.</summary>
    public sealed class StairException : Exception
    {
        internal StairException(StairErrorCode code, string message)
            : base(message)
        {
            Code = code;
            Name = Utf8.Copy(Native.stair_status_name((int)code));
        }

        /// <summary>The kind of the error, to branch on.</summary>
        public StairErrorCode Code { get; }

        /// <summary>The kind's name, the same in every language, for example <c>INVALID_K</c>.</summary>
        public string Name { get; }

        /// <summary>Throws if a call failed. Takes the error object and frees it.</summary>
        internal static void ThrowIfFailed(int status, IntPtr error)
        {
            if (status != 0)
            {
                throw new StairException((StairErrorCode)status, TakeMessage(error));
            }
        }

        /// <summary>Copies an error's message and frees the error.</summary>
        internal static string TakeMessage(IntPtr error)
        {
            try
            {
                UIntPtr length;
                string message = Utf8.Copy(Native.stair_error_message(error, out length), length);
                return string.IsNullOrEmpty(message) ? "libstair gave no message" : message;
            }
            finally
            {
                Native.stair_error_free(error);
            }
        }
    }
}
