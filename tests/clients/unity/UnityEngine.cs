// What the sample's script uses of Unity, in a few lines, so that a compiler can look at it without the engine; and a
// game of two frames a line, so that it can be seen to talk.

using System;

namespace UnityEngine
{
    public class Object
    {
    }

    public class MonoBehaviour : Object
    {
    }

    public sealed class HeaderAttribute : Attribute
    {
        public HeaderAttribute(string header)
        {
        }
    }

    public sealed class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string tooltip)
        {
        }
    }

    public sealed class TextAreaAttribute : Attribute
    {
    }
}

namespace UnityEngine.Events
{
    public class UnityEvent<T>
    {
        event Action<T> Heard;

        public void AddListener(Action<T> call)
        {
            Heard += call;
        }

        public void Invoke(T what)
        {
            if (Heard != null)
                Heard(what);
        }
    }
}

namespace UnityEngine.UI
{
    public class Text : MonoBehaviour
    {
        public string text { get; set; }
    }
}
