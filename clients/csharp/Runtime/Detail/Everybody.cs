using System;
using System.Collections.Generic;
using System.Runtime.ExceptionServices;

namespace Trunkline.Tryll
{
    internal static class Everybody
    {
        /// <summary>Tells all of them, whatever one of them throws. What was thrown first comes out at the end.</summary>
        public static void Hears(IEnumerable<Action> tells)
        {
            ExceptionDispatchInfo first = null;
            foreach (var tell in tells)
                try
                {
                    tell();
                }
                catch (Exception error)
                {
                    first = first ?? ExceptionDispatchInfo.Capture(error);
                }
            if (first != null)
                first.Throw();
        }
    }
}
