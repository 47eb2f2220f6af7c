using System;
using System.Collections.Generic;
using System.Text;

namespace Trunkline.Tryll
{
    /// <summary>Writes a message: parents before children, so that every offset leads ahead.</summary>
    internal sealed class Writer
    {
        /// <summary>No table of the schema has more fields.</summary>
        const int MostPositions = 64;

        static readonly Encoding Utf8 = new UTF8Encoding(false, true);

        byte[] data = new byte[256];
        int length;

        /// <summary>The payload of a frame.</summary>
        /// <exception cref="TryllException">FrameTooLarge; InvalidParamValue, a text is not one.</exception>
        public byte[] Message(MessageBody body)
        {
            Grow(4);
            WriteTable(0, new Envelope { Body = body });
            var payload = new byte[length];
            Buffer.BlockCopy(data, 0, payload, 0, length);
            return payload;
        }

        /// <summary>Makes room, up to a multiple of four, and gives where it begins.</summary>
        int Grow(int bytes)
        {
            long begin = length, end = begin + ((bytes + 3L) & ~3L);
            if (end > Protocol.MaxFrame)
                throw new TryllException(ErrorCode.FrameTooLarge, "The message does not fit into a frame.");
            if (end > data.Length)
                Array.Resize(ref data, (int)Math.Max(end, 2L * data.Length));
            length = (int)end;
            return (int)begin;
        }

        void Store16(int at, int value)
        {
            data[at] = (byte)value;
            data[at + 1] = (byte)(value >> 8);
        }

        void Store32(int at, uint value)
        {
            Store16(at, (int)value);
            Store16(at + 2, (int)(value >> 16));
        }

        /// <summary>Lets the offset at a place lead to another.</summary>
        void Lead(int at, int target)
        {
            Store32(at, (uint)(target - at));
        }

        void WriteTable(int from, Table table)
        {
            var layout = new Layout(table.Sparse);
            table.Visit(layout);
            layout.Arrange();
            int vtableBytes = 4 + 2 * layout.Positions, padding = 0;
            // Numbers of eight bytes come first, behind the four of the table's own.
            while ((length + padding + vtableBytes + (layout.Wide ? 4 : 0)) % (layout.Wide ? 8 : 4) != 0)
                padding += 2;
            int vtable = Grow(padding + vtableBytes + layout.Size) + padding;
            int at = vtable + vtableBytes;
            Store16(vtable, vtableBytes);
            Store16(vtable + 2, layout.Size);
            for (int position = 0; position < layout.Positions; ++position)
                Store16(vtable + 4 + 2 * position, layout.Offsets[position]);
            Store32(at, (uint)(at - vtable));
            Lead(from, at);
            table.Visit(new Fill(this, at, layout.Offsets));
        }

        void WriteText(int from, string value)
        {
            byte[] bytes;
            try
            {
                bytes = Utf8.GetBytes(value ?? "");
            }
            catch (ArgumentException)
            {
                throw new TryllException(ErrorCode.InvalidParamValue, "A text has half a surrogate pair.");
            }
            // A zero byte follows.
            int at = Grow(4 + bytes.Length + 1);
            Store32(at, (uint)bytes.Length);
            Buffer.BlockCopy(bytes, 0, data, at + 4, bytes.Length);
            Lead(from, at);
        }

        int WriteVector(int from, int count, int width)
        {
            long bytes = 4L + (long)count * width;
            int at = Grow((int)Math.Min(bytes, int.MaxValue - 8));
            Store32(at, (uint)count);
            Lead(from, at);
            return at + 4;
        }

        /// <summary>Which fields a table has, and where they come to stand: the widest first.</summary>
        sealed class Layout : Visitor
        {
            public readonly int[] Offsets = new int[MostPositions];
            public int Positions, Size = 4;
            public bool Wide;

            readonly int[] widths = new int[MostPositions];
            readonly bool sparse;

            public Layout(bool sparse)
            {
                this.sparse = sparse;
            }

            public void Arrange()
            {
                for (int width = 8; width > 0; width /= 2)
                    for (int position = 0; position < Positions; ++position)
                        if (widths[position] == width)
                        {
                            Offsets[position] = Size;
                            Size += width;
                        }
                Size = (Size + 3) & ~3;
            }

            void Add(int position, int width)
            {
                widths[position] = width;
                Positions = position + 1;
                Wide = Wide || width == 8;
            }

            void AddIf(bool present, int position)
            {
                if (present)
                    Add(position, 4);
            }

            public override void Number(int position, string name, ref ulong value) { Add(position, 8); }
            public override void Number(int position, string name, ref uint value) { Add(position, 4); }
            public override void Number(int position, string name, ref int value) { Add(position, 4); }
            public override void Number(int position, string name, ref ushort value) { Add(position, 2); }
            public override void Number(int position, string name, ref byte value) { Add(position, 1); }
            public override void Number(int position, string name, ref float value) { Add(position, 4); }
            public override void Number(int position, string name, ref bool value) { Add(position, 1); }
            public override void Number(int position, string name, ref uint? value) { AddIf(value.HasValue, position); }
            public override void Number(int position, string name, ref int? value) { AddIf(value.HasValue, position); }
            public override void Number(int position, string name, ref float? value) { AddIf(value.HasValue, position); }
            public override void Text(int position, string name, ref string value) { Add(position, 4); }
            public override void OptionalText(int position, string name, ref string value) { AddIf(value != null, position); }

            public override void Texts(int position, string name, ref List<string> value)
            {
                AddIf(!sparse || (value != null && value.Count > 0), position);
            }

            public override void Samples(int position, string name, ref short[] value) { Add(position, 4); }

            public override void Table<T>(int position, string name, ref T value, Func<T> make)
            {
                AddIf(value != null, position);
            }

            public override void Tables<T>(int position, string name, ref List<T> value, Func<T> make)
            {
                AddIf(!sparse || (value != null && value.Count > 0), position);
            }

            public override void Union<T>(int position, string name, ref T value, Func<byte, T> make)
            {
                if (value == null)
                    return;
                Add(position, 1);
                Add(position + 1, 4);
            }
        }

        /// <summary>Writes what stands in a table, and behind it what its offsets lead to.</summary>
        sealed class Fill : Visitor
        {
            readonly Writer writer;
            readonly int table;
            readonly int[] offsets;

            public Fill(Writer writer, int table, int[] offsets)
            {
                this.writer = writer;
                this.table = table;
                this.offsets = offsets;
            }

            int At(int position)
            {
                return table + offsets[position];
            }

            public override void Number(int position, string name, ref ulong value)
            {
                writer.Store32(At(position), (uint)value);
                writer.Store32(At(position) + 4, (uint)(value >> 32));
            }

            public override void Number(int position, string name, ref uint value)
            {
                writer.Store32(At(position), value);
            }

            public override void Number(int position, string name, ref int value)
            {
                writer.Store32(At(position), (uint)value);
            }

            public override void Number(int position, string name, ref ushort value)
            {
                writer.Store16(At(position), value);
            }

            public override void Number(int position, string name, ref byte value)
            {
                writer.data[At(position)] = value;
            }

            public override void Number(int position, string name, ref float value)
            {
                writer.Store32(At(position), Bits.Of(value));
            }

            public override void Number(int position, string name, ref bool value)
            {
                writer.data[At(position)] = (byte)(value ? 1 : 0);
            }

            public override void Number(int position, string name, ref uint? value)
            {
                if (value.HasValue)
                    writer.Store32(At(position), value.Value);
            }

            public override void Number(int position, string name, ref int? value)
            {
                if (value.HasValue)
                    writer.Store32(At(position), (uint)value.Value);
            }

            public override void Number(int position, string name, ref float? value)
            {
                if (value.HasValue)
                    writer.Store32(At(position), Bits.Of(value.Value));
            }

            public override void Text(int position, string name, ref string value)
            {
                writer.WriteText(At(position), value);
            }

            public override void OptionalText(int position, string name, ref string value)
            {
                if (value != null)
                    writer.WriteText(At(position), value);
            }

            public override void Texts(int position, string name, ref List<string> value)
            {
                if (offsets[position] == 0)
                    return;
                int count = value == null ? 0 : value.Count;
                int at = writer.WriteVector(At(position), count, 4);
                for (int number = 0; number < count; ++number)
                    writer.WriteText(at + 4 * number, value[number]);
            }

            public override void Samples(int position, string name, ref short[] value)
            {
                int count = value == null ? 0 : value.Length;
                int at = writer.WriteVector(At(position), count, 2);
                for (int number = 0; number < count; ++number)
                    writer.Store16(at + 2 * number, value[number]);
            }

            public override void Table<T>(int position, string name, ref T value, Func<T> make)
            {
                if (value != null)
                    writer.WriteTable(At(position), value);
            }

            public override void Tables<T>(int position, string name, ref List<T> value, Func<T> make)
            {
                if (offsets[position] == 0)
                    return;
                int count = value == null ? 0 : value.Count;
                int at = writer.WriteVector(At(position), count, 4);
                for (int number = 0; number < count; ++number)
                    writer.WriteTable(at + 4 * number, value[number] ?? make());
            }

            public override void Union<T>(int position, string name, ref T value, Func<byte, T> make)
            {
                if (value == null)
                    return;
                writer.data[At(position)] = value.Tag;
                writer.WriteTable(At(position + 1), value);
            }
        }
    }
}
