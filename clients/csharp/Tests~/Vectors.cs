// Reads payloads in hexadecimal, one on each line, and answers each with a line: what it holds, or with --encode, how
// the client writes that. See clients/vectors/README.md.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Text;

namespace Trunkline.Tryll.Tests
{
    static class Vectors
    {
        static int Main(string[] arguments)
        {
            bool encodes = arguments.Length > 0 && arguments[0] == "--encode";
            using (var answers = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)))
            {
                string line;
                while ((line = Console.In.ReadLine()) != null)
                    answers.Write(Answer(line, encodes) + "\n");
            }
            return 0;
        }

        static string Answer(string line, bool encodes)
        {
            var payload = new byte[line.Length / 2];
            for (int at = 0; at < payload.Length; ++at)
                payload[at] = byte.Parse(line.Substring(2 * at, 2), NumberStyles.HexNumber, CultureInfo.InvariantCulture);
            try
            {
                var message = Codec.Decode(payload);
                return encodes ? BitConverter.ToString(Codec.Encode(message)).Replace("-", "") : Shown.Member(message);
            }
            catch (TryllException error)
            {
                return "{\"error\":" + error.Code + "}";
            }
        }

        /// <summary>Shows a table as a JSON object.</summary>
        sealed class Shown : Visitor
        {
            readonly List<string> members = new List<string>();

            public static string Member(Member member)
            {
                if (member == null)
                    return "null";
                var shown = new Shown();
                shown.Add("type", Quoted(member.TypeName));
                return shown.All(member);
            }

            static string Plain(Table table)
            {
                return table == null ? "null" : new Shown().All(table);
            }

            static string Quoted(string text)
            {
                if (text == null)
                    return "null";
                var quoted = new StringBuilder("\"");
                foreach (char each in text)
                    if (each == '"' || each == '\\' || each < ' ')
                        quoted.Append("\\u" + ((int)each).ToString("x4", CultureInfo.InvariantCulture));
                    else
                        quoted.Append(each);
                return quoted.Append('"').ToString();
            }

            static string Joined<T>(List<T> items, Func<T, string> show)
            {
                return "[" + string.Join(",", items.ConvertAll(item => show(item)).ToArray()) + "]";
            }

            static string Digits(float value)
            {
                return float.IsNaN(value) ? "NaN" : float.IsInfinity(value) ? (value > 0 ? "Infinity" : "-Infinity")
                    : value.ToString("G9", CultureInfo.InvariantCulture);
            }

            string All(Table table)
            {
                table.Visit(this);
                return "{" + string.Join(",", members.ToArray()) + "}";
            }

            void Add(string name, object value)
            {
                members.Add(Quoted(name) + ":" + Convert.ToString(value ?? "null", CultureInfo.InvariantCulture));
            }

            public override void Number(int position, string name, ref ulong value) { Add(name, value); }
            public override void Number(int position, string name, ref uint value) { Add(name, value); }
            public override void Number(int position, string name, ref int value) { Add(name, value); }
            public override void Number(int position, string name, ref ushort value) { Add(name, value); }
            public override void Number(int position, string name, ref byte value) { Add(name, value); }
            public override void Number(int position, string name, ref float value) { Add(name, Digits(value)); }
            public override void Number(int position, string name, ref bool value) { Add(name, value ? "true" : "false"); }
            public override void Number(int position, string name, ref uint? value) { Add(name, value); }
            public override void Number(int position, string name, ref int? value) { Add(name, value); }

            public override void Number(int position, string name, ref float? value)
            {
                Add(name, value.HasValue ? Digits(value.Value) : "null");
            }

            public override void Text(int position, string name, ref string value) { Add(name, Quoted(value)); }
            public override void OptionalText(int position, string name, ref string value) { Add(name, Quoted(value)); }
            public override void Texts(int position, string name, ref List<string> value) { Add(name, Joined(value, Quoted)); }

            public override void Samples(int position, string name, ref short[] value)
            {
                var bytes = new byte[2 * value.Length];
                for (int number = 0; number < bytes.Length; ++number)
                    bytes[number] = (byte)(value[number / 2] >> 8 * (number % 2));
                Add(name, Quoted(Convert.ToBase64String(bytes)));
            }

            public override void Table<T>(int position, string name, ref T value, Func<T> make) { Add(name, Plain(value)); }

            public override void Tables<T>(int position, string name, ref List<T> value, Func<T> make)
            {
                Add(name, Joined(value, Plain));
            }

            public override void Union<T>(int position, string name, ref T value, Func<byte, T> make)
            {
                Add(name, Member(value));
            }
        }
    }
}
