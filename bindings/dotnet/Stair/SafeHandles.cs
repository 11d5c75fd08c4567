using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Stair
{
    /// <summary>
    /// A handle of libstair, freed once; zero is none. A SafeHandle counts the calls that run with
    /// it: Dispose during a call frees the native object when the last of them has returned.
    /// </summary>
    internal abstract class NativeHandle : SafeHandle
    {
        // IsClosed says so only when the last call has returned; new calls end at once.
        private volatile bool disposed;

        protected NativeHandle()
            : base(IntPtr.Zero, true)
        {
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        /// <summary>This handle, or the exception that names its disposed owner.</summary>
        internal static T Open<T>(T handle, string owner)
            where T : NativeHandle
        {
            if (handle.disposed)
            {
                throw new ObjectDisposedException(owner);
            }
            return handle;
        }

        /// <summary>
        /// As <c>Open</c>, and calls go on with it, also after a Dispose, until what this
        /// returns is called. More than once is harmless.
        /// </summary>
        internal Action Hold(string owner)
        {
            Open(this, owner);
            bool held = false;
            DangerousAddRef(ref held);
            int holds = 1;
            return () =>
            {
                if (Interlocked.Exchange(ref holds, 0) == 1)
                {
                    DangerousRelease();
                }
            };
        }

        protected override void Dispose(bool disposing)
        {
            disposed = true;
            base.Dispose(disposing);
        }
    }

    internal sealed class ModelHandle : NativeHandle
    {
        protected override bool ReleaseHandle()
        {
            Native.stair_model_free(handle);
            return true;
        }
    }

    internal sealed class IndexHandle : NativeHandle
    {
        protected override bool ReleaseHandle()
        {
            Native.stair_index_free(handle);
            return true;
        }
    }

    /// <summary>
    /// Freeing a retriever waits for its thread, for seconds where it decodes a table of contents. Who
    /// calls Dispose waits; the finalizer's thread, and the last call to return after a Dispose, do not.
    /// </summary>
    internal sealed class RetrieverHandle : NativeHandle
    {
        // What this thread disposes of.
        [ThreadStatic]
        private static RetrieverHandle disposed;

        protected override void Dispose(bool disposing)
        {
            disposed = disposing ? this : null;
            try
            {
                base.Dispose(disposing);
            }
            finally
            {
                disposed = null;
            }
        }

        protected override bool ReleaseHandle()
        {
            var native = handle;
            if (disposed == this)
            {
                Native.stair_retriever_free(native);
            }
            else
            {
                ThreadPool.UnsafeQueueUserWorkItem(_ => Native.stair_retriever_free(native), null);
            }
            return true;
        }
    }

    internal sealed class ResultsHandle : NativeHandle
    {
        protected override bool ReleaseHandle()
        {
            Native.stair_results_free(handle);
            return true;
        }
    }

    internal sealed class CancelHandle : NativeHandle
    {
        /// <summary>NULL: a call that nobody can cancel.</summary>
        internal static readonly CancelHandle None = new CancelHandle();

        internal static CancelHandle Create()
        {
            var cancel = new CancelHandle();
            cancel.SetHandle(Native.stair_cancel_new());
            if (cancel.IsInvalid)
            {
                throw new OutOfMemoryException("libstair: no memory for a cancel token");
            }
            return cancel;
        }

        protected override bool ReleaseHandle()
        {
            Native.stair_cancel_free(handle);
            return true;
        }
    }
}
