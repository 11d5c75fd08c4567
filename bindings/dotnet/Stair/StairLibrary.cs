using System;
using System.Threading;

namespace Stair
{
    /// <summary>How much a log message matters.</summary>
    public enum StairLogLevel
    {
        /// <summary>Something failed.</summary>
        Error = 1,

        /// <summary>Something works, but not as it should.</summary>
        Warning = 2,

        /// <summary>What happens, once per model, index and retriever.</summary>
        Information = 3,

        /// <summary>What happens, in detail.</summary>
        Debug = 4,
    }

    /// <summary>The native library as a whole: its versions and its log.</summary>
    public static class StairLibrary
    {
        // Native code keeps a pointer to this one delegate, so it must live as long as the process.
        private static readonly Native.LogFn Trampoline = Log;

        private static readonly object LogLock = new object();
        private static Action<StairLogLevel, string> logCallback;
        private static volatile bool abiChecked;

        /// <summary>The version of the native library, for example <c>0.1.0</c>.</summary>
        /// <exception cref="DllNotFoundException">The native library was not found.</exception>
        public static string Version
        {
            get { return Utf8.Copy(Native.stair_version()); }
        }

        /// <summary>How the native library was built: features, llama.cpp revision, target.</summary>
        /// <exception cref="DllNotFoundException">The native library was not found.</exception>
        public static string BuildInfo
        {
            get { return Utf8.Copy(Native.stair_build_info()); }
        }

        /// <summary>
        /// Sends the log of the library and of llama.cpp to a callback. It may be called from any
        /// thread, several at a time, and must not call into this library. What it throws is dropped.
        /// </summary>
        /// <param name="callback">Receives each message; null is silence, the default.</param>
        /// <param name="maxLevel">The least important level to receive.</param>
        /// <exception cref="DllNotFoundException">The native library was not found.</exception>
        public static void SetLog(
            Action<StairLogLevel, string> callback, StairLogLevel maxLevel = StairLogLevel.Information)
        {
            EnsureCompatible();
            lock (LogLock)
            {
                Volatile.Write(ref logCallback, callback);
                Native.stair_log_set(callback == null ? null : Trampoline, IntPtr.Zero, (int)maxLevel);
            }
        }

        /// <summary>Checks, once, that the native library speaks the ABI of this assembly.</summary>
        internal static void EnsureCompatible()
        {
            if (abiChecked)
            {
                return;
            }
            uint found = Native.stair_abi_version();
            if (found != Native.AbiVersion)
            {
                throw new NotSupportedException(
                    "the native library stair " + Version + " has ABI version " + found
                    + ", this assembly needs " + Native.AbiVersion
                    + ": install a Stair package and a native library of the same release");
            }
            abiChecked = true;
        }

        private static void Log(int level, IntPtr message, UIntPtr length, IntPtr userdata)
        {
            // An exception must not unwind into native code.
            try
            {
                var callback = Volatile.Read(ref logCallback);
                if (callback != null)
                {
                    callback((StairLogLevel)level, Utf8.Copy(message, length));
                }
            }
            catch (Exception)
            {
            }
        }
    }
}
