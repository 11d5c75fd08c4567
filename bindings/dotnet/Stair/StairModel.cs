using System;
using System.Threading;

namespace Stair
{
    /// <summary>How to open a model. The defaults suit.</summary>
    public sealed class ModelOptions
    {
        /// <summary>Layers on the GPU: 0 all of them where there is one, -1 none.</summary>
        public int GpuLayers { get; set; }

        /// <summary>Read the file into memory in place of mapping it, for network drives.</summary>
        public bool DisableMmap { get; set; }

        /// <summary>Only the vocabulary: enough to build an index, not to answer.</summary>
        public bool VocabularyOnly { get; set; }

        /// <summary>
        /// Memory, in bytes, that the contexts of all retrievers with this model may take together; 0 for
        /// as much as they need. Otherwise the one that was asked longest ago gives way to the one that
        /// is asked, and is made again at its next question: fast with a <c>CacheDir</c>, else at the
        /// price of decoding the table of contents again.
        /// </summary>
        public long ContextMemory { get; set; }

        internal Native.ModelOptions ToNative()
        {
            Native.ModelOptions options;
            StairException.ThrowIfFailed(
                Native.stair_model_options_init(out options, (UIntPtr)Native.SizeOf<Native.ModelOptions>()),
                IntPtr.Zero);
            options.GpuLayers = GpuLayers;
            options.DisableMmap = DisableMmap ? 1u : 0;
            options.VocabularyOnly = VocabularyOnly ? 1u : 0;
            options.ContextMemory = ContextMemory >= 0
                ? (ulong)ContextMemory
                : throw new ArgumentOutOfRangeException(nameof(ContextMemory), ContextMemory, "must not be negative");
            return options;
        }
    }

    /// <summary>What a model file says of itself.</summary>
    public sealed class ModelInfo
    {
        internal ModelInfo(Native.ModelInfo info)
        {
            Architecture = Utf8.Copy(info.Architecture, info.ArchitectureLen) ?? "";
            VocabularySize = checked((int)info.VocabSize);
            // Some files say that their context is without end.
            ContextLength = (int)Math.Min(info.ContextLength, int.MaxValue);
            Parameters = (long)Math.Min(info.Parameters, (ulong)long.MaxValue);
            Bytes = (long)Math.Min(info.Bytes, (ulong)long.MaxValue);
            Fingerprint = info.Fingerprint;
        }

        /// <summary>The architecture's name, for example <c>llama</c>.</summary>
        public string Architecture { get; }

        /// <summary>Tokens in the vocabulary.</summary>
        public int VocabularySize { get; }

        /// <summary>The longest context that it was trained on, in tokens.</summary>
        public int ContextLength { get; }

        /// <summary>The number of parameters; 0 for a vocabulary.</summary>
        public long Parameters { get; }

        /// <summary>The size of the tensors in bytes; 0 for a vocabulary.</summary>
        public long Bytes { get; }

        /// <summary>The fingerprint of the vocabulary, which an index for this model has too.</summary>
        public ulong Fingerprint { get; }
    }

    /// <summary>
    /// An open model. Any number of threads and retrievers may share it. It may be disposed before
    /// the retrievers that use it.
    /// </summary>
    public sealed class StairModel : IDisposable
    {
        private readonly ModelHandle handle;

        private StairModel(ModelHandle handle)
        {
            this.handle = handle;
            try
            {
                var info = new Native.ModelInfo { StructSize = Native.SizeOf<Native.ModelInfo>() };
                IntPtr error;
                StairException.ThrowIfFailed(Native.stair_model_get_info(handle, ref info, out error), error);
                Info = new ModelInfo(info);
            }
            catch
            {
                // Nobody else will: the model would stay until a finalizer runs.
                handle.Dispose();
                throw;
            }
        }

        /// <summary>What the model file says of itself. It can be read after Dispose too.</summary>
        public ModelInfo Info { get; }

        internal ModelHandle Handle
        {
            get { return NativeHandle.Open(handle, nameof(StairModel)); }
        }

        /// <summary>Opens a GGUF model. This can take seconds.</summary>
        /// <param name="path">The file.</param>
        /// <param name="options">How; null for the defaults.</param>
        /// <param name="cancellationToken">Ends the wait early.</param>
        /// <returns>The model, to be disposed.</returns>
        /// <exception cref="StairException">The file is missing or not a usable model.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public static StairModel Open(
            string path, ModelOptions options = null, CancellationToken cancellationToken = default(CancellationToken))
        {
            StairLibrary.EnsureCompatible();
            var utf8 = Utf8.Required(path, nameof(path));
            var native = (options ?? new ModelOptions()).ToNative();
            using (var call = new CancellableCall(cancellationToken))
            {
                ModelHandle handle;
                IntPtr error;
                call.ThrowIfFailed(
                    Native.stair_model_open(utf8.Bytes, utf8.Length, ref native, call.Cancel, out handle, out error),
                    error);
                return new StairModel(handle);
            }
        }

        /// <summary>Lets go of the model. More than once is harmless.</summary>
        public void Dispose()
        {
            handle.Dispose();
        }
    }
}
