using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Trunkline.Tryll
{
    /// <summary>Takes a JSON object apart, as far as a client needs it: names, texts, and all other values as they
    /// stand.</summary>
    internal sealed class JsonObject
    {
        readonly string text;
        int at;

        JsonObject(string json)
        {
            text = json;
        }

        /// <summary>The members of an object; none if it is no object.</summary>
        public static List<KeyValuePair<string, string>> Members(string json)
        {
            try
            {
                return new JsonObject(json ?? "").Read();
            }
            catch (FormatException)
            {
                return new List<KeyValuePair<string, string>>();
            }
        }

        /// <summary>The value of the first with that name, or "".</summary>
        public static string ValueOf(List<KeyValuePair<string, string>> members, string name)
        {
            foreach (var member in members)
                if (member.Key == name)
                    return member.Value;
            return "";
        }

        List<KeyValuePair<string, string>> Read()
        {
            var found = new List<KeyValuePair<string, string>>();
            Take('{');
            if (Next() == '}')
                return found;
            while (true)
            {
                Next();
                string name = Text();
                Take(':');
                found.Add(new KeyValuePair<string, string>(name, Next() == '"' ? Text() : Other()));
                if (Next() == '}')
                    return found;
                Take(',');
            }
        }

        char Next()
        {
            while (at < text.Length && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
                ++at;
            return Peek();
        }

        char Peek()
        {
            if (at >= text.Length)
                throw new FormatException();
            return text[at];
        }

        void Take(char wanted)
        {
            if (Next() != wanted)
                throw new FormatException();
            ++at;
        }

        /// <summary>A value that is not a text, as it stands; to its comma, or the end of the object.</summary>
        string Other()
        {
            int begin = at, depth = 0;
            for (; depth > 0 || (Peek() != ',' && Peek() != '}'); )
            {
                char each = Peek();
                if (each == '"')
                {
                    Text();
                    continue;
                }
                if (each == '{' || each == '[')
                    ++depth;
                if (each == '}' || each == ']')
                    --depth;
                if (depth < 0)
                    throw new FormatException();
                ++at;
            }
            return text.Substring(begin, at - begin).TrimEnd(' ', '\t', '\n', '\r');
        }

        string Text()
        {
            if (Peek() != '"')
                throw new FormatException();
            var found = new StringBuilder();
            for (++at; Peek() != '"'; ++at)
                found.Append(text[at] == '\\' ? Escaped() : text[at]);
            ++at;
            return found.ToString();
        }

        char Escaped()
        {
            ++at;
            if (Peek() == 'u')
            {
                if (at + 4 >= text.Length)
                    throw new FormatException();
                string digits = text.Substring(at + 1, 4);
                at += 4;
                // A FormatException, too, if that is no number.
                return (char)uint.Parse(digits, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture);
            }
            int which = "\"\\/bfnrt".IndexOf(text[at]);
            if (which < 0)
                throw new FormatException();
            return "\"\\/\b\f\n\r\t"[which];
        }
    }
}
