using System;
using System.IO;
using System.Runtime.InteropServices;

namespace Stair
{
    /// <summary>The C ABI of <c>include/stair.h</c>, word for word, and nothing else.</summary>
    internal static class Native
    {
        internal const uint AbiVersion = 1;

        internal const uint IndexCopy = 1;
        internal const uint None = uint.MaxValue;

        private const string Library = "stair";

        [StructLayout(LayoutKind.Sequential)]
        internal struct ModelOptions
        {
            internal uint StructSize;
            internal int GpuLayers;
            internal uint DisableMmap;
            internal uint VocabularyOnly;
            internal ulong ContextMemory;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct ModelInfo
        {
            internal uint StructSize;
            internal uint VocabSize;
            internal uint ContextLength;
            internal uint Reserved;
            internal ulong Parameters;
            internal ulong Bytes;
            internal ulong Fingerprint;
            internal IntPtr Architecture;
            internal UIntPtr ArchitectureLen;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct IndexInfo
        {
            internal uint StructSize;
            internal uint Sections;
            internal uint Leaves;
            internal uint TrieNodes;
            internal uint LongestTitle;
            internal uint PrefixTokens;
            internal uint VocabSize;
            internal uint HasText;
            internal ulong Fingerprint;
            internal ulong Bytes;
            internal IntPtr Title;
            internal UIntPtr TitleLen;
            internal uint VersionMajor;
            internal uint VersionMinor;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Section
        {
            internal uint StructSize;
            internal uint Id;
            internal uint Parent;
            internal uint Depth;
            internal uint Leaf;
            internal uint Page;
            internal ulong SpanStart;
            internal ulong SpanEnd;
            internal IntPtr Number;
            internal UIntPtr NumberLen;
            internal IntPtr Title;
            internal UIntPtr TitleLen;
            internal IntPtr Text;
            internal UIntPtr TextLen;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct BuildOptions
        {
            internal uint StructSize;
            internal uint Format;
            internal uint OmitText;
            internal uint KeepFrontMatter;
            internal IntPtr Questions;
            internal UIntPtr QuestionsLen;
            internal IntPtr Split;
            internal UIntPtr SplitLen;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct RetrieverOptions
        {
            internal uint StructSize;
            internal uint Threads;
            internal uint ContextTokens;
            internal uint MaxQuestionTokens;
            internal uint MaxParallel;
            internal uint KvType;
            internal uint Deterministic;
            internal uint MaxWaiting;
            internal IntPtr CacheDir;
            internal UIntPtr CacheDirLen;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct RetrieveOptions
        {
            internal uint StructSize;
            internal uint K;
            internal uint Scoring;
            internal uint TimeoutMs;
            internal float LexicalWeight;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Hit
        {
            internal uint StructSize;
            internal uint Section;
            internal uint Page;
            internal uint PathLen;
            internal ulong SpanStart;
            internal ulong SpanEnd;
            internal double LogProb;
            internal IntPtr Number;
            internal UIntPtr NumberLen;
            internal IntPtr Title;
            internal UIntPtr TitleLen;
            internal IntPtr Text;
            internal UIntPtr TextLen;
            internal double Score;
            internal double Lexical;
        }

        [StructLayout(LayoutKind.Sequential)]
        internal struct Stats
        {
            internal uint StructSize;
            internal uint Decodes;
            internal uint QuestionTokens;
            internal uint SearchTokens;
            internal uint PrefixTokens;
            internal uint RestoredTokens;
            internal double LegalMass;
            internal double PrefillMs;
            internal double SearchMs;
            internal double TotalMs;
        }

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        internal delegate void LogFn(int level, IntPtr message, UIntPtr len, IntPtr userdata);

        // Library.

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern uint stair_abi_version();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern IntPtr stair_version();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern IntPtr stair_build_info();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern IntPtr stair_status_name(int status);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern void stair_log_set(LogFn callback, IntPtr userdata, int maxLevel);

        // Errors.

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_error_code(IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern IntPtr stair_error_message(IntPtr error, out UIntPtr len);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern void stair_error_free(IntPtr error);

        // Models.

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_model_options_init(out ModelOptions options, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_model_open(
            byte[] path, UIntPtr pathLen, ref ModelOptions options, CancelHandle cancel,
            out ModelHandle model, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_model_get_info(
            ModelHandle model, ref ModelInfo info, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern void stair_model_free(IntPtr model);

        // Indexes.

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_build_options_init(out BuildOptions options, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_index_open(
            byte[] path, UIntPtr pathLen, uint flags, out IndexHandle index, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_index_open_buffer(
            byte[] data, UIntPtr len, out IndexHandle index, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_index_build(
            ModelHandle model, byte[] document, UIntPtr documentLen, byte[] title, UIntPtr titleLen,
            ref BuildOptions options, out IndexHandle index, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_index_save(
            IndexHandle index, byte[] path, UIntPtr pathLen, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_index_peek(
            byte[] path, UIntPtr pathLen, ref IndexInfo info, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_index_get_info(
            IndexHandle index, ref IndexInfo info, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_index_section(
            IndexHandle index, uint id, ref Section section, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern void stair_index_free(IntPtr index);

        // Retrievers.

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_retriever_options_init(
            out RetrieverOptions options, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_retriever_new(
            ModelHandle model, IndexHandle index, ref RetrieverOptions options,
            out RetrieverHandle retriever, out IntPtr error);

        // The same function; this declaration can pass NULL for the model and the options.
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_retriever_new(
            IntPtr model, IndexHandle index, IntPtr options,
            out RetrieverHandle retriever, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_retriever_warm(
            RetrieverHandle retriever, CancelHandle cancel, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern void stair_retriever_free(IntPtr retriever);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_retrieve_options_init(
            out RetrieveOptions options, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_retrieve(
            RetrieverHandle retriever, ref byte question, UIntPtr questionLen,
            ref RetrieveOptions options, CancelHandle cancel,
            out ResultsHandle results, out IntPtr error);

        // The same function; this declaration can pass NULL for the options.
        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_retrieve(
            RetrieverHandle retriever, ref byte question, UIntPtr questionLen,
            IntPtr options, CancelHandle cancel,
            out ResultsHandle results, out IntPtr error);

        // Results.

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern UIntPtr stair_results_count(ResultsHandle results);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_results_get(
            ResultsHandle results, UIntPtr i, ref Hit hit, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_results_path(
            ResultsHandle results, UIntPtr i, UIntPtr entry, out IntPtr text, out UIntPtr len,
            out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_results_stats(
            ResultsHandle results, ref Stats stats, out IntPtr error);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern void stair_results_free(IntPtr results);

        // Cancellation.

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern IntPtr stair_cancel_new();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern void stair_cancel_trigger(CancelHandle cancel);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern int stair_cancel_triggered(CancelHandle cancel);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]
        internal static extern void stair_cancel_free(IntPtr cancel);

        /// <summary>The size of a struct of this file, as its <c>struct_size</c>.</summary>
        internal static uint SizeOf<T>()
        {
            return (uint)Marshal.SizeOf<T>();
        }

        /// <summary>An option of a C <c>uint32_t</c>.</summary>
        internal static uint Unsigned(int value, string name)
        {
            if (value < 0)
            {
                throw new ArgumentOutOfRangeException(name, value, "must not be negative");
            }
            return (uint)value;
        }

        /// <summary>A section's page or parent.</summary>
        internal static long? Optional(uint value)
        {
            return value == None ? (long?)null : value;
        }

#if NETCOREAPP
        // NuGet puts native libraries where the runtime looks. A project reference copies them to
        // runtimes/RID/native below the application, where it does not.
        static Native()
        {
            try
            {
                NativeLibrary.SetDllImportResolver(typeof(Native).Assembly, Resolve);
            }
            catch (InvalidOperationException)
            {
                // The application has set its own resolver, which stands.
            }
        }

        private static IntPtr Resolve(
            string name, System.Reflection.Assembly assembly, DllImportSearchPath? searchPath)
        {
            if (name != Library)
            {
                return IntPtr.Zero;
            }
            string system = "linux", file = "libstair.so";
            if (RuntimeInformation.IsOSPlatform(OSPlatform.Windows))
            {
                system = "win";
                file = "stair.dll";
            }
            else if (RuntimeInformation.IsOSPlatform(OSPlatform.OSX))
            {
                system = "osx";
                file = "libstair.dylib";
            }
            string rid = system + "-" + RuntimeInformation.ProcessArchitecture.ToString().ToLowerInvariant();
            string path = Path.Combine(AppContext.BaseDirectory, "runtimes", rid, "native", file);
            IntPtr library;
            // Zero sends the runtime on to its own places, and to its own error.
            return NativeLibrary.TryLoad(path, out library) ? library : IntPtr.Zero;
        }
#endif
    }
}
