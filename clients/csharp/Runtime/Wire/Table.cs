using System;
using System.Collections.Generic;

namespace Trunkline.Tryll
{
    /// <summary>What can stand in a frame: fields with fixed positions.</summary>
    [Serializable]
    public abstract class Table
    {
        /// <summary>Whether empty lists are left out when it is written: absence means "inherited" there.</summary>
        internal virtual bool Sparse { get { return false; } }

        /// <summary>Shows all fields, in their order.</summary>
        internal abstract void Visit(Visitor visitor);
    }

    /// <summary>A table that is one of a union.</summary>
    [Serializable]
    public abstract class Member : Table
    {
        /// <summary>Its name in the schema.</summary>
        public abstract string TypeName { get; }

        internal abstract byte Tag { get; }
        internal virtual bool FromClient { get { return false; } }
        internal virtual bool HasRequestId { get { return false; } }
        internal virtual ulong Request { get { return 0; } set { } }
    }

    /// <summary>The root of every frame.</summary>
    internal sealed class Envelope : Table
    {
        public MessageBody Body;

        internal override void Visit(Visitor visitor)
        {
            visitor.Union(0, "body", ref Body, MessageBody.Make);
        }
    }

    /// <summary>Who is shown the fields of a table. Tables are made by functions, not by reflection, so that nothing of
    /// it is stripped from a game.</summary>
    internal abstract class Visitor
    {
        public abstract void Number(int position, string name, ref ulong value);
        public abstract void Number(int position, string name, ref uint value);
        public abstract void Number(int position, string name, ref int value);
        public abstract void Number(int position, string name, ref ushort value);
        public abstract void Number(int position, string name, ref byte value);
        public abstract void Number(int position, string name, ref float value);
        public abstract void Number(int position, string name, ref bool value);
        public abstract void Number(int position, string name, ref uint? value);
        public abstract void Number(int position, string name, ref int? value);
        public abstract void Number(int position, string name, ref float? value);
        public abstract void Text(int position, string name, ref string value);
        public abstract void OptionalText(int position, string name, ref string value);
        public abstract void Texts(int position, string name, ref List<string> value);
        public abstract void Samples(int position, string name, ref short[] value);
        public abstract void Table<T>(int position, string name, ref T value, Func<T> make) where T : Table;
        public abstract void Tables<T>(int position, string name, ref List<T> value, Func<T> make) where T : Table;
        public abstract void Union<T>(int position, string name, ref T value, Func<byte, T> make) where T : Member;
    }
}
