using System;
using System.Threading;

namespace Stair
{
    /// <summary>How a title is scored.</summary>
    public enum Scoring
    {
        /// <summary>Exact log-probabilities.</summary>
        Exact = 0,

        /// <summary>Renormalised over what the document allows at each step: cheaper, and ranks worse.</summary>
        Local = 1,
    }

    /// <summary>How to answer one question.</summary>
    public sealed class RetrieveOptions
    {
        private TimeSpan? timeout;

        /// <summary>How many hits: 1 up to the number of leaves. Null, the default, is for 3, or for all leaves when there are fewer.</summary>
        public int? K { get; set; }

        /// <summary>How titles are scored.</summary>
        public Scoring Scoring { get; set; } = Scoring.Exact;

        /// <summary>The longest wait, in steps of a millisecond; null, the default, waits for the answer.</summary>
        /// <exception cref="ArgumentOutOfRangeException">The value is not positive, or above 49 days.</exception>
        public TimeSpan? Timeout
        {
            get
            {
                return timeout;
            }

            set
            {
                if (value <= TimeSpan.Zero || value > TimeSpan.FromDays(49))
                {
                    throw new ArgumentOutOfRangeException(nameof(value), value, "must be positive and at most 49 days");
                }
                timeout = value;
            }
        }

        /// <summary>
        /// How much a section's words count beside what the model says: a hit is ranked by
        /// <see cref="Hit.LogProb"/> and this times <see cref="Hit.Lexical"/>. 0, the default, leaves
        /// the words out; other weights must be finite and above 0. Without a model only the words
        /// count, whatever it is.
        /// </summary>
        public float LexicalWeight { get; set; }

        internal Native.RetrieveOptions ToNative()
        {
            Native.RetrieveOptions options;
            StairException.ThrowIfFailed(
                Native.stair_retrieve_options_init(out options, (UIntPtr)Native.SizeOf<Native.RetrieveOptions>()),
                IntPtr.Zero);
            if (K.HasValue)
            {
                options.K = Native.Unsigned(K.Value, nameof(K));
            }
            options.Scoring = Native.Unsigned((int)Scoring, nameof(Scoring));
            options.LexicalWeight = LexicalWeight;
            if (timeout.HasValue)
            {
                options.TimeoutMs = (uint)Math.Ceiling(timeout.Value.TotalMilliseconds);
            }
            return options;
        }
    }

    /// <summary>How the keys and values of the context are stored.</summary>
    public enum KvType
    {
        /// <summary>The library's choice: <see cref="F16"/>.</summary>
        Default = 0,

        /// <summary>16-bit floats.</summary>
        F16 = 1,

        /// <summary>8-bit blocks: half the memory of <see cref="F16"/>, slightly different scores.</summary>
        Q8_0 = 2,

        /// <summary>32-bit floats.</summary>
        F32 = 3,
    }

    /// <summary>How to make a retriever. The defaults suit.</summary>
    public sealed class RetrieverOptions
    {
        /// <summary>Threads that compute; 0 for as many as the process may use.</summary>
        public int Threads { get; set; }

        /// <summary>The length of the context in tokens; 0 for what is needed.</summary>
        public int ContextTokens { get; set; }

        /// <summary>Room for one question, in tokens; 0 for 512.</summary>
        public int MaxQuestionTokens { get; set; }

        /// <summary>Questions that share the model's work; 0 for 8. More wait their turn.</summary>
        public int MaxParallel { get; set; }

        /// <summary>
        /// Questions that may wait for their turn; 0 for 4,096. Who comes when so many do gets
        /// <see cref="StairErrorCode.Busy"/> at once.
        /// </summary>
        public int MaxWaiting { get; set; }

        /// <summary>How the keys and values of the context are stored.</summary>
        public KvType KvType { get; set; }

        /// <summary>One question at a time: bit-equal scores, whatever else is asked.</summary>
        public bool Deterministic { get; set; }

        /// <summary>
        /// A folder for the warm file: what the model remembers of the table of contents, written
        /// after the first answer and read by every later retriever with the same model, index and
        /// options, which then need not decode it. A file or a folder that cannot be used is as
        /// none, and the log says why. Whoever may write to the folder can change what is answered.
        /// Null or empty for no file.
        /// </summary>
        public string CacheDir { get; set; }

        internal Native.RetrieverOptions ToNative()
        {
            Native.RetrieverOptions options;
            StairException.ThrowIfFailed(
                Native.stair_retriever_options_init(out options, (UIntPtr)Native.SizeOf<Native.RetrieverOptions>()),
                IntPtr.Zero);
            options.Threads = Native.Unsigned(Threads, nameof(Threads));
            options.ContextTokens = Native.Unsigned(ContextTokens, nameof(ContextTokens));
            options.MaxQuestionTokens = Native.Unsigned(MaxQuestionTokens, nameof(MaxQuestionTokens));
            options.MaxParallel = Native.Unsigned(MaxParallel, nameof(MaxParallel));
            options.MaxWaiting = Native.Unsigned(MaxWaiting, nameof(MaxWaiting));
            options.KvType = Native.Unsigned((int)KvType, nameof(KvType));
            options.Deterministic = Deterministic ? 1u : 0;
            return options;
        }
    }
}
