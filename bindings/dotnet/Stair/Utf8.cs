using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Stair
{
    /// <summary>
    /// A text on its way to C: UTF-8 with a length. The array has a NUL more than that, so it has
    /// a first element even for the empty text.
    /// </summary>
    internal struct Utf8
    {
        private static readonly UTF8Encoding Strict = new UTF8Encoding(false, true);

        internal readonly byte[] Bytes;
        internal readonly UIntPtr Length;

        /// <summary>Encodes a text; null becomes NULL and 0.</summary>
        /// <exception cref="StairException">The text has an unpaired surrogate.</exception>
        internal Utf8(string text)
        {
            if (text == null)
            {
                Bytes = null;
                Length = UIntPtr.Zero;
                return;
            }
            try
            {
                int length = Strict.GetByteCount(text);
                Bytes = new byte[length + 1];
                Strict.GetBytes(text, 0, text.Length, Bytes, 0);
                Length = (UIntPtr)(uint)length;
            }
            catch (EncoderFallbackException error)
            {
                throw new StairException(
                    StairErrorCode.InvalidUtf8, "a text has an unpaired surrogate at UTF-16 unit " + error.Index);
            }
        }

        /// <summary>Encodes a text that must be there.</summary>
        internal static Utf8 Required(string text, string parameter)
        {
            if (text == null)
            {
                throw new ArgumentNullException(parameter);
            }
            return new Utf8(text);
        }

        /// <summary>Copies a text of libstair; NULL becomes null.</summary>
        internal static string Copy(IntPtr text, UIntPtr length)
        {
            if (text == IntPtr.Zero)
            {
                return null;
            }
            var bytes = new byte[checked((int)(ulong)length)];
            Marshal.Copy(text, bytes, 0, bytes.Length);
            return Encoding.UTF8.GetString(bytes);
        }

        /// <summary>Copies a NUL-terminated text of libstair.</summary>
        internal static string Copy(IntPtr text)
        {
            int length = 0;
            while (text != IntPtr.Zero && Marshal.ReadByte(text, length) != 0)
            {
                length++;
            }
            return Copy(text, (UIntPtr)(uint)length);
        }
    }
}
