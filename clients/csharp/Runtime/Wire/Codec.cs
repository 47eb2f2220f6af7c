using System.Runtime.InteropServices;

namespace Trunkline.Tryll
{
    /// <summary>The wire, for tests and for tools. The client does this itself.</summary>
    public static class Codec
    {
        /// <summary>The message in the payload of a frame. Every byte of it is checked before it is believed.</summary>
        /// <exception cref="TryllException">MalformedMessage, it is none; UnknownMessageType, it is, or holds,
        /// something that the schema does not have.</exception>
        public static MessageBody Decode(byte[] payload)
        {
            return new Reader(payload).Message();
        }

        /// <summary>The payload of a message.</summary>
        /// <exception cref="TryllException">FrameTooLarge; InvalidParamValue, a text is not one.</exception>
        public static byte[] Encode(MessageBody message)
        {
            return new Writer().Message(message);
        }
    }

    /// <summary>A float as it stands in a frame. Not every runtime has a function for it.</summary>
    [StructLayout(LayoutKind.Explicit)]
    internal struct Bits
    {
        [FieldOffset(0)] uint number;
        [FieldOffset(0)] float value;

        public static uint Of(float value)
        {
            return new Bits { value = value }.number;
        }

        public static float ToFloat(uint number)
        {
            return new Bits { number = number }.value;
        }
    }
}
