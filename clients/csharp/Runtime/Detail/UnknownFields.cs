using System;
using System.Collections.Generic;

namespace Trunkline.Tryll
{
    /// <summary>Looks through a message for a field that is set, and that a server with these extensions does not know:
    /// it would pass over it, and answer otherwise.</summary>
    internal sealed class UnknownFields : Visitor
    {
        readonly ICollection<string> extensions;
        string found = "";

        UnknownFields(ICollection<string> extensions)
        {
            this.extensions = extensions;
        }

        /// <summary>What is wrong with sending that, or null.</summary>
        public static TryllException In(Table message, ICollection<string> extensions)
        {
            var visitor = new UnknownFields(extensions);
            message.Visit(visitor);
            if (visitor.found.Length == 0)
                return null;
            return new TryllException(
                ErrorCode.UnknownMessageType, "This server does not know `" + visitor.found + "`.");
        }

        void Look(string name, bool set)
        {
            string extension = Protocol.ExtensionOf(name);
            if (set && found.Length == 0 && extension.Length > 0 && !extensions.Contains(extension))
                found = name;
        }

        public override void Number(int position, string name, ref ulong value) { Look(name, value != 0); }
        public override void Number(int position, string name, ref uint value) { Look(name, value != 0); }
        public override void Number(int position, string name, ref int value) { Look(name, value != 0); }
        public override void Number(int position, string name, ref ushort value) { Look(name, value != 0); }
        public override void Number(int position, string name, ref byte value) { Look(name, value != 0); }
        public override void Number(int position, string name, ref float value) { Look(name, value != 0); }
        public override void Number(int position, string name, ref bool value) { Look(name, value); }
        public override void Number(int position, string name, ref uint? value) { Look(name, value.HasValue); }
        public override void Number(int position, string name, ref int? value) { Look(name, value.HasValue); }
        public override void Number(int position, string name, ref float? value) { Look(name, value.HasValue); }
        public override void Text(int position, string name, ref string value) { Look(name, !string.IsNullOrEmpty(value)); }

        public override void OptionalText(int position, string name, ref string value)
        {
            Look(name, !string.IsNullOrEmpty(value));
        }

        public override void Texts(int position, string name, ref List<string> value)
        {
            Look(name, value != null && value.Count > 0);
        }

        public override void Samples(int position, string name, ref short[] value)
        {
            Look(name, value != null && value.Length > 0);
        }

        public override void Table<T>(int position, string name, ref T value, Func<T> make)
        {
            Look(name, value != null);
            if (value != null)
                value.Visit(this);
        }

        public override void Tables<T>(int position, string name, ref List<T> value, Func<T> make)
        {
            Look(name, value != null && value.Count > 0);
            if (value == null)
                return;
            foreach (var each in value)
                if (each != null)
                    each.Visit(this);
        }

        public override void Union<T>(int position, string name, ref T value, Func<byte, T> make)
        {
            Look(name, value != null);
            if (value != null)
                value.Visit(this);
        }
    }
}
