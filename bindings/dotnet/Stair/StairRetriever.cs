using System;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Stair
{
    /// <summary>
    /// Answers which sections of a document answer a question. Any number of threads may ask one
    /// retriever at the same time. Dispose lets the questions that are being answered finish.
    /// </summary>
    public sealed class StairRetriever : IDisposable
    {
        private readonly RetrieverHandle handle;

        /// <summary>
        /// Makes a retriever. It keeps what it needs of the model and of the index. The table of
        /// contents is decoded, or read from the warm file, for the first question, or by <see cref="Warm"/>.
        /// </summary>
        /// <param name="model">The model.</param>
        /// <param name="index">An index that was built for the model's vocabulary.</param>
        /// <param name="options">How; null for the defaults.</param>
        /// <exception cref="StairException">The two do not fit together, or memory is short.</exception>
        public StairRetriever(StairModel model, StairIndex index, RetrieverOptions options = null)
        {
            if (model == null)
            {
                throw new ArgumentNullException(nameof(model));
            }
            if (index == null)
            {
                throw new ArgumentNullException(nameof(index));
            }
            var native = (options ?? new RetrieverOptions()).ToNative();
            var cacheDir = new Utf8(options?.CacheDir);
            // The call reads the path where it lies.
            var pinned = GCHandle.Alloc(cacheDir.Bytes ?? new byte[1], GCHandleType.Pinned);
            try
            {
                native.CacheDir = pinned.AddrOfPinnedObject();
                native.CacheDirLen = cacheDir.Length;
                IntPtr error;
                StairException.ThrowIfFailed(
                    Native.stair_retriever_new(model.Handle, index.Handle, ref native, out handle, out error), error);
            }
            finally
            {
                pinned.Free();
            }
        }

        private StairRetriever(RetrieverHandle handle)
        {
            this.handle = handle;
        }

        /// <summary>
        /// Makes a retriever that needs no model: it ranks sections by the words that they and their
        /// known questions have in common with the question. It finds as many sections as it is asked for; those that
        /// share no word with the question score 0 and stand in document order.
        /// </summary>
        /// <param name="index">The index.</param>
        /// <returns>The retriever.</returns>
        /// <exception cref="StairException">Memory is short.</exception>
        public static StairRetriever Lexical(StairIndex index)
        {
            if (index == null)
            {
                throw new ArgumentNullException(nameof(index));
            }
            RetrieverHandle handle;
            IntPtr error;
            StairException.ThrowIfFailed(
                Native.stair_retriever_new(IntPtr.Zero, index.Handle, IntPtr.Zero, out handle, out error), error);
            return new StairRetriever(handle);
        }

        private RetrieverHandle Handle
        {
            get { return NativeHandle.Open(handle, nameof(StairRetriever)); }
        }

        /// <summary>
        /// Decodes the table of contents, if it is not yet: then the first question need not wait.
        /// Without a model it reads the sections' words.
        /// </summary>
        /// <param name="cancellationToken">Ends the wait early.</param>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        /// <exception cref="StairException">The model failed.</exception>
        public void Warm(CancellationToken cancellationToken = default(CancellationToken))
        {
            var retriever = Handle;
            using (var call = new CancellableCall(cancellationToken))
            {
                IntPtr error;
                call.ThrowIfFailed(Native.stair_retriever_warm(retriever, call.Cancel, out error), error);
            }
        }

        /// <summary>Finds the sections that answer a question.</summary>
        /// <param name="question">The question, in any language.</param>
        /// <param name="options">
        /// How; null for three hits (fewer if the document has fewer leaves) and no deadline.
        /// </param>
        /// <param name="cancellationToken">Ends the search early.</param>
        /// <returns>The sections, the best first.</returns>
        /// <exception cref="StairException">
        /// The question or an option is not usable, the deadline passed, or the model failed.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        /// <exception cref="ObjectDisposedException">The retriever is disposed.</exception>
        public RetrieveResult Retrieve(
            string question, RetrieveOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            var utf8 = Utf8.Required(question, nameof(question));
            return Retrieve(Handle, ref utf8.Bytes[0], utf8.Length, options?.ToNative(), cancellationToken);
        }

#if NETCOREAPP || NETSTANDARD2_1
        /// <summary>Finds the sections that answer a question that is UTF-8 already. Nothing is copied.</summary>
        /// <param name="utf8Question">The question, in any language.</param>
        /// <param name="options">
        /// How; null for three hits (fewer if the document has fewer leaves) and no deadline.
        /// </param>
        /// <param name="cancellationToken">Ends the search early.</param>
        /// <returns>The sections, the best first.</returns>
        /// <exception cref="StairException">
        /// The question or an option is not usable, the deadline passed, or the model failed.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        /// <exception cref="ObjectDisposedException">The retriever is disposed.</exception>
        public RetrieveResult Retrieve(
            ReadOnlySpan<byte> utf8Question, RetrieveOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            // An empty span has no first byte to refer to.
            ReadOnlySpan<byte> question = utf8Question.IsEmpty ? new byte[1] : utf8Question;
            return Retrieve(
                Handle, ref MemoryMarshal.GetReference(question), (UIntPtr)(uint)utf8Question.Length,
                options?.ToNative(), cancellationToken);
        }
#endif

        /// <summary>
        /// Finds the sections that answer a question, on a thread of its own: the wait for the
        /// model is long, and the thread pool stays free for other work.
        /// </summary>
        /// <param name="question">The question, in any language.</param>
        /// <param name="options">
        /// How; null for three hits (fewer if the document has fewer leaves) and no deadline.
        /// </param>
        /// <param name="cancellationToken">Ends the search early: the task is then cancelled.</param>
        /// <returns>The sections, the best first.</returns>
        /// <exception cref="StairException">
        /// The question or an option is not usable, the deadline passed, or the model failed.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        /// <exception cref="ObjectDisposedException">The retriever is disposed.</exception>
        public Task<RetrieveResult> RetrieveAsync(
            string question, RetrieveOptions options = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (question == null)
            {
                throw new ArgumentNullException(nameof(question));
            }
            // Read now: the caller may change the options after the call.
            var native = options?.ToNative();
            // Held now: a Dispose after the call lets the question finish, also where its thread begins later.
            var release = handle.Hold(nameof(StairRetriever));
            try
            {
                var task = Task.Factory.StartNew(
                    () =>
                    {
                        try
                        {
                            var utf8 = new Utf8(question);
                            return Retrieve(handle, ref utf8.Bytes[0], utf8.Length, native, cancellationToken);
                        }
                        finally
                        {
                            // Before the task is done, so that who waited for it and disposes waits for the end.
                            release();
                        }
                    },
                    cancellationToken,
                    TaskCreationOptions.LongRunning | TaskCreationOptions.DenyChildAttach,
                    TaskScheduler.Default);
                // A task that is cancelled before its thread begins runs nothing.
                task.ContinueWith(
                    _ => release(), CancellationToken.None, TaskContinuationOptions.ExecuteSynchronously,
                    TaskScheduler.Default);
                return task;
            }
            catch
            {
                release(); // No thread could be started.
                throw;
            }
        }

        /// <summary>Lets go of the retriever. More than once is harmless.</summary>
        public void Dispose()
        {
            handle.Dispose();
        }

        private static RetrieveResult Retrieve(
            RetrieverHandle retriever, ref byte question, UIntPtr length, Native.RetrieveOptions? options,
            CancellationToken cancellationToken)
        {
            using (var call = new CancellableCall(cancellationToken))
            {
                ResultsHandle results;
                IntPtr error;
                int status;
                if (options.HasValue)
                {
                    var native = options.Value;
                    status = Native.stair_retrieve(
                        retriever, ref question, length, ref native, call.Cancel, out results, out error);
                }
                else
                {
                    status = Native.stair_retrieve(
                        retriever, ref question, length, IntPtr.Zero, call.Cancel, out results, out error);
                }
                call.ThrowIfFailed(status, error);
                using (results)
                {
                    return RetrieveResult.Copy(results);
                }
            }
        }
    }
}
