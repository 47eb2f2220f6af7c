using System;

namespace Trunkline.Tryll
{
    /// <summary>Why something did not happen. The message is a sentence for people.</summary>
    public sealed class TryllException : Exception
    {
        /// <summary>One of <see cref="ErrorCode"/>; a server may send others.</summary>
        public int Code { get; private set; }

        /// <summary>The code's name, or "" for one that nobody knows.</summary>
        public string Name { get { return ErrorCode.NameOf(Code); } }

        /// <summary>What to do about it, or "".</summary>
        public string Advice { get { return ErrorCode.AdviceFor(Code); } }

        public TryllException(int code, string message = "") : base(Sentence(code, message))
        {
            Code = code;
        }

        static string Sentence(int code, string message)
        {
            if (!string.IsNullOrEmpty(message))
                return message;
            string meaning = ErrorCode.MeaningOf(code);
            return meaning.Length > 0 ? meaning : "The server gave no reason.";
        }
    }
}
