using System;
using System.Collections.Generic;
using System.IO;
using System.Text;

namespace Trunkline.Tryll
{
    /// <summary>One text of several words, as `ProcessStartInfo.Arguments` needs it.</summary>
    /// <remarks>Not every mono that has `ArgumentList` looks at it; and mono on Unix takes words apart as a shell does,
    /// all others as Windows.</remarks>
    internal static class CommandLine
    {
        static readonly bool AsShell = Path.DirectorySeparatorChar == '/' && Type.GetType("Mono.Runtime") != null;

        public static string Of(IEnumerable<string> words)
        {
            var line = new StringBuilder();
            foreach (string word in words)
                line.Append(line.Length > 0 ? " \"" : "\"").Append(AsShell ? ForShell(word) : ForWindows(word)).Append('"');
            return line.ToString();
        }

        static string ForShell(string word)
        {
            var safe = new StringBuilder();
            foreach (char each in word)
                safe.Append("\\\"$`".IndexOf(each) < 0 ? "" : "\\").Append(each);
            return safe.ToString();
        }

        static string ForWindows(string word)
        {
            var safe = new StringBuilder();
            int slashes = 0;
            foreach (char each in word)
            {
                // Only those in front of a quote count twice.
                if (each == '"')
                    safe.Append('\\', slashes + 1);
                slashes = each == '\\' ? slashes + 1 : 0;
                safe.Append(each);
            }
            return safe.Append('\\', slashes).ToString();
        }
    }
}
