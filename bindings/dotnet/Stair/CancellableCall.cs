using System;
using System.Threading;

namespace Stair
{
    /// <summary>
    /// The link from a .NET token to a native one, for the time of one call. Disposing first ends
    /// the registration, which waits for a callback that runs, and then frees the native token, so
    /// a late trigger never meets freed memory.
    /// </summary>
    internal sealed class CancellableCall : IDisposable
    {
        private readonly CancellationToken token;
        private readonly CancellationTokenRegistration registration;

        internal CancellableCall(CancellationToken token)
        {
            this.token = token;
            token.ThrowIfCancellationRequested();
            Cancel = CancelHandle.None;
            if (token.CanBeCanceled)
            {
                Cancel = CancelHandle.Create();
                registration = token.Register(Trigger, Cancel);
            }
        }

        /// <summary>The native token for the call.</summary>
        internal CancelHandle Cancel { get; }

        internal void ThrowIfFailed(int status, IntPtr error)
        {
            if (status == (int)StairErrorCode.Cancelled && token.IsCancellationRequested)
            {
                throw new OperationCanceledException(StairException.TakeMessage(error), token);
            }
            StairException.ThrowIfFailed(status, error);
        }

        public void Dispose()
        {
            registration.Dispose();
            if (Cancel != CancelHandle.None)
            {
                Cancel.Dispose();
            }
        }

        private static void Trigger(object cancel)
        {
            Native.stair_cancel_trigger((CancelHandle)cancel);
        }
    }
}
