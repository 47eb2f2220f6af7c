using System;
using System.Collections.Generic;
using System.Text;

namespace Trunkline.Tryll
{
    /// <summary>Reads a buffer that nobody has checked. No byte of it is believed before it was seen to be
    /// possible.</summary>
    /// <remarks>
    /// Offsets can lie: lead out of the buffer, or a thousand times to the same place. So everything that is visited
    /// must lie inside the buffer and where its alignment allows, and is counted as often as it is visited. How deep it
    /// goes needs no limit of its own: no table of the schema holds itself.
    /// </remarks>
    internal sealed class Reader
    {
        // The limits of Trunkline's own reader: see clients/vectors/README.md.
        const int MostText = 4 << 20, SharedText = 64 << 10;
        const int MostObjects = 1 << 17, SharedObjects = 1024;

        /// <summary>The root's offset, an empty vtable, an empty table.</summary>
        const int Smallest = 12;

        static readonly Encoding Utf8 = new UTF8Encoding(false, true);

        readonly byte[] data;
        int objects;
        long text;

        public Reader(byte[] payload)
        {
            data = payload;
            objects = Math.Min(SharedObjects + payload.Length / 4, MostObjects);
            text = Math.Min(SharedText + 4L * payload.Length, MostText);
        }

        /// <summary>The message of the buffer.</summary>
        /// <exception cref="TryllException">MalformedMessage or UnknownMessageType.</exception>
        public MessageBody Message()
        {
            if (data.Length < Smallest || data.Length > Protocol.MaxFrame)
                throw Malformed();
            var root = new Envelope();
            ReadTable(root, Follow(0));
            if (root.Body == null)
                throw Malformed();
            return root.Body;
        }

        static TryllException Malformed()
        {
            return new TryllException(ErrorCode.MalformedMessage);
        }

        uint Load32(int at)
        {
            return (uint)(data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24);
        }

        ushort Load16(int at)
        {
            return (ushort)(data[at] | data[at + 1] << 8);
        }

        void Spend(int count)
        {
            objects -= count;
            if (objects < 0)
                throw Malformed();
        }

        /// <summary>Where the offset at a place leads to. There are at least four bytes there.</summary>
        int Follow(int at)
        {
            uint offset = Load32(at);
            long target = at + (long)offset;
            if (offset == 0 || target % 4 != 0 || target + 4 > data.Length)
                throw Malformed();
            return (int)target;
        }

        void ReadTable(Table table, int at)
        {
            Spend(1);
            long vtable = at - (long)(int)Load32(at);
            if (vtable < 0 || vtable % 2 != 0 || vtable + 4 > data.Length)
                throw Malformed();
            int length = Load16((int)vtable), size = Load16((int)vtable + 2);
            if (length < 4 || length % 2 != 0 || vtable + length > data.Length || size < 4 || at + size > data.Length)
                throw Malformed();
            table.Visit(new Fields(this, at, size, (int)vtable + 4, length / 2 - 2));
        }

        string ReadText(int at)
        {
            Spend(1);
            uint length = Load32(at);
            long end = at + 4 + (long)length;
            // A zero byte follows.
            if (end >= data.Length || data[end] != 0)
                throw Malformed();
            text -= length;
            if (text < 0)
                throw Malformed();
            try
            {
                return Utf8.GetString(data, at + 4, (int)length);
            }
            catch (ArgumentException)
            {
                throw Malformed();
            }
        }

        /// <summary>The number of items of a vector, if there is room for so many.</summary>
        int Count(int at, int width)
        {
            Spend(1);
            uint count = Load32(at);
            if (count > (data.Length - at - 4) / width)
                throw Malformed();
            return (int)count;
        }

        /// <summary>The fields of one table.</summary>
        sealed class Fields : Visitor
        {
            readonly Reader reader;
            readonly byte[] data;
            readonly int table, size, entries, count;
            // What earlier fields have taken of the table: begin and end of each.
            readonly List<int> taken = new List<int>();

            public Fields(Reader reader, int table, int size, int entries, int count)
            {
                this.reader = reader;
                data = reader.data;
                this.table = table;
                this.size = size;
                this.entries = entries;
                this.count = count;
            }

            /// <summary>Where in the frame a field is; 0 if it is absent.</summary>
            int Place(int position, int width)
            {
                int from = position < count ? reader.Load16(entries + 2 * position) : 0, to = from + width;
                if (from == 0)
                    return 0;
                if (from < 4 || from % Math.Min(width, 4) != 0 || to > size)
                    throw Malformed();
                for (int number = 0; number < taken.Count; number += 2)
                    if (from < taken[number + 1] && taken[number] < to)
                        throw Malformed();
                taken.Add(from);
                taken.Add(to);
                return table + from;
            }

            /// <summary>Where that is to which a field leads; 0 if it is absent.</summary>
            int Child(int position)
            {
                int at = Place(position, 4);
                return at == 0 ? 0 : reader.Follow(at);
            }

            public override void Number(int position, string name, ref ulong value)
            {
                int at = Place(position, 8);
                if (at != 0)
                    value = reader.Load32(at) | (ulong)reader.Load32(at + 4) << 32;
            }

            public override void Number(int position, string name, ref uint value)
            {
                int at = Place(position, 4);
                if (at != 0)
                    value = reader.Load32(at);
            }

            public override void Number(int position, string name, ref int value)
            {
                int at = Place(position, 4);
                if (at != 0)
                    value = (int)reader.Load32(at);
            }

            public override void Number(int position, string name, ref ushort value)
            {
                int at = Place(position, 2);
                if (at != 0)
                    value = reader.Load16(at);
            }

            public override void Number(int position, string name, ref byte value)
            {
                int at = Place(position, 1);
                if (at != 0)
                    value = data[at];
            }

            public override void Number(int position, string name, ref float value)
            {
                int at = Place(position, 4);
                if (at != 0)
                    value = Bits.ToFloat(reader.Load32(at));
            }

            public override void Number(int position, string name, ref bool value)
            {
                int at = Place(position, 1);
                if (at != 0)
                    value = data[at] != 0;
            }

            public override void Number(int position, string name, ref uint? value)
            {
                int at = Place(position, 4);
                if (at != 0)
                    value = reader.Load32(at);
            }

            public override void Number(int position, string name, ref int? value)
            {
                int at = Place(position, 4);
                if (at != 0)
                    value = (int)reader.Load32(at);
            }

            public override void Number(int position, string name, ref float? value)
            {
                int at = Place(position, 4);
                if (at != 0)
                    value = Bits.ToFloat(reader.Load32(at));
            }

            public override void Text(int position, string name, ref string value)
            {
                int at = Child(position);
                if (at != 0)
                    value = reader.ReadText(at);
            }

            public override void OptionalText(int position, string name, ref string value)
            {
                Text(position, name, ref value);
            }

            public override void Texts(int position, string name, ref List<string> value)
            {
                int at = Child(position);
                if (at == 0)
                    return;
                int items = reader.Count(at, 4);
                for (int number = 1; number <= items; ++number)
                    value.Add(reader.ReadText(reader.Follow(at + 4 * number)));
            }

            public override void Samples(int position, string name, ref short[] value)
            {
                int at = Child(position);
                if (at == 0)
                    return;
                value = new short[reader.Count(at, 2)];
                for (int number = 0; number < value.Length; ++number)
                    value[number] = (short)reader.Load16(at + 4 + 2 * number);
            }

            public override void Table<T>(int position, string name, ref T value, Func<T> make)
            {
                int at = Child(position);
                if (at == 0)
                    return;
                value = make();
                reader.ReadTable(value, at);
            }

            public override void Tables<T>(int position, string name, ref List<T> value, Func<T> make)
            {
                int at = Child(position);
                if (at == 0)
                    return;
                int items = reader.Count(at, 4);
                for (int number = 1; number <= items; ++number)
                {
                    T item = make();
                    reader.ReadTable(item, reader.Follow(at + 4 * number));
                    value.Add(item);
                }
            }

            public override void Union<T>(int position, string name, ref T value, Func<byte, T> make)
            {
                bool root = typeof(T) == typeof(MessageBody);
                int tagAt = Place(position, 1);
                // Trunkline lets these two overlap in a message's root, and nowhere else.
                if (root)
                    taken.Clear();
                int offsetAt = Place(position + 1, 4);
                byte tag = tagAt == 0 ? (byte)0 : data[tagAt];
                if (tag == 0)
                    return;
                // A tag that nobody knows is told before its value is looked at; but a message has to be somewhere.
                if (root)
                    Lead(offsetAt);
                value = make(tag);
                if (value == null)
                    throw new TryllException(ErrorCode.UnknownMessageType);
                reader.ReadTable(value, Lead(offsetAt));
            }

            int Lead(int at)
            {
                if (at == 0)
                    throw Malformed();
                return reader.Follow(at);
            }
        }
    }
}
