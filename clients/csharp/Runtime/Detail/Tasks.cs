using System.Threading.Tasks;

namespace Trunkline.Tryll
{
    internal static class Tasks
    {
        /// <summary>A call that may be thrown away: whoever does not look at its error does not want to know
        /// it.</summary>
        public static TaskCompletionSource<T> Source<T>()
        {
            var source = new TaskCompletionSource<T>();
            source.Task.ContinueWith(
                task => task.Exception,
                TaskContinuationOptions.OnlyOnFaulted | TaskContinuationOptions.ExecuteSynchronously);
            return source;
        }
    }
}
