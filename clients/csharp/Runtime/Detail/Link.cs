using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using System.Threading;

namespace Trunkline.Tryll
{
    /// <summary>A connection that carries payloads. Threads of its own read and write, and call nobody.</summary>
    internal abstract class Link
    {
        /// <summary>What has come and was not taken, in bytes: more is not read, and the server waits.</summary>
        const int MostUnread = 8 << 20;
        /// <summary>What was given and is not sent, in bytes: a server that does not read.</summary>
        const int MostUnsent = 32 << 20;

        readonly Queue<byte[]> unread = new Queue<byte[]>();
        readonly Queue<byte[]> unsent = new Queue<byte[]>();
        readonly object gate = new object();
        int unreadBytes, unsentBytes;
        TryllException lost;
        bool closed, woken;

        /// <summary>The next payload that has come, or null. `error` tells that there will be no more.</summary>
        public byte[] Take(out TryllException error)
        {
            lock (gate)
            {
                error = null;
                if (unread.Count == 0)
                {
                    error = lost;
                    return null;
                }
                var payload = unread.Dequeue();
                unreadBytes -= payload.Length;
                Monitor.PulseAll(gate);
                return payload;
            }
        }

        /// <summary>Sends a payload, soon. False if too many wait for that already.</summary>
        public bool Send(byte[] payload)
        {
            lock (gate)
            {
                if (unsentBytes + payload.Length > MostUnsent)
                    return false;
                unsent.Enqueue(payload);
                unsentBytes += payload.Length;
                Monitor.PulseAll(gate);
                return true;
            }
        }

        /// <summary>Waits until there is something to take, or for so long, or until `Wake`.</summary>
        public void Wait(double seconds)
        {
            lock (gate)
            {
                if (unread.Count == 0 && lost == null && !woken)
                    Monitor.Wait(gate, TimeSpan.FromSeconds(seconds));
                woken = false;
            }
        }

        public void Wake()
        {
            lock (gate)
            {
                woken = true;
                Monitor.PulseAll(gate);
            }
        }

        public void Close()
        {
            lock (gate)
            {
                closed = true;
                Monitor.PulseAll(gate);
            }
            Shut();
        }

        /// <summary>Ends whatever the threads wait for.</summary>
        protected abstract void Shut();

        /// <summary>Opens the connection; on a thread of its own.</summary>
        protected abstract void Open();

        /// <summary>The next payload. Blocks.</summary>
        protected abstract byte[] Read();

        protected abstract void Write(byte[] payload);

        protected void Start()
        {
            new Thread(Reading) { IsBackground = true, Name = "Tryll reader" }.Start();
        }

        protected bool Closed { get { lock (gate) return closed; } }

        void Reading()
        {
            TryllException why;
            int code = ErrorCode.ConnectionFailed;
            try
            {
                Open();
                code = ErrorCode.ConnectionDropped;
                new Thread(Writing) { IsBackground = true, Name = "Tryll writer" }.Start();
                while (Keep(Read()))
                {
                }
                why = new TryllException(code);
            }
            catch (TryllException error)
            {
                why = error;
            }
            catch (Exception error)
            {
                why = new TryllException(code, Sentence(code, error));
            }
            lock (gate)
            {
                lost = why;
                Monitor.PulseAll(gate);
            }
        }

        static string Sentence(int code, Exception error)
        {
            bool failed = code == ErrorCode.ConnectionFailed;
            string what = failed ? "The server cannot be reached: " : "The connection was lost: ";
            return what + error.GetBaseException().Message.TrimEnd('.') + ".";
        }

        bool Keep(byte[] payload)
        {
            lock (gate)
            {
                while (unreadBytes > MostUnread && !closed)
                    Monitor.Wait(gate);
                unread.Enqueue(payload);
                unreadBytes += payload.Length;
                Monitor.PulseAll(gate);
                return !closed;
            }
        }

        void Writing()
        {
            try
            {
                for (byte[] payload = Given(); payload != null; payload = Given())
                    Write(payload);
            }
            catch (Exception)
            {
                // The reader hears of it, too, and tells why.
                Shut();
            }
        }

        byte[] Given()
        {
            lock (gate)
            {
                while (unsent.Count == 0 && !closed && lost == null)
                    Monitor.Wait(gate);
                if (unsent.Count == 0 || closed)
                    return null;
                var payload = unsent.Dequeue();
                unsentBytes -= payload.Length;
                return payload;
            }
        }
    }

    /// <summary>TCP: each payload with its length in front of it.</summary>
    internal sealed class TcpLink : Link
    {
        readonly string host;
        readonly int port;
        volatile Socket socket;

        public TcpLink(string host, int port)
        {
            this.host = host;
            this.port = port;
            Start();
        }

        protected override void Open()
        {
            IPAddress given;
            var addresses = IPAddress.TryParse(host, out given) ? new[] { given } : Dns.GetHostAddresses(host);
            SocketException last = null;
            foreach (var address in addresses)
            {
                socket = new Socket(address.AddressFamily, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
                try
                {
                    socket.Connect(new IPEndPoint(address, port));
                    if (Closed)
                        Shut();
                    return;
                }
                catch (SocketException error)
                {
                    last = error;
                    socket.Close();
                }
            }
            throw last ?? new SocketException((int)SocketError.HostNotFound);
        }

        protected override void Shut()
        {
            var open = socket;
            if (open == null)
                return;
            try
            {
                open.Shutdown(SocketShutdown.Both);
            }
            catch (SocketException)
            {
                // It is not connected yet, or no longer.
            }
            catch (ObjectDisposedException)
            {
                return;
            }
            open.Close();
        }

        protected override byte[] Read()
        {
            var header = Exactly(4);
            uint length = (uint)(header[0] | header[1] << 8 | header[2] << 16 | header[3] << 24);
            if (length > Protocol.MaxFrame)
                throw new TryllException(ErrorCode.FrameTooLarge);
            if (length == 0)
                throw new TryllException(
                    ErrorCode.MalformedMessage, "The server broke the protocol: it sent an empty frame.");
            return Exactly((int)length);
        }

        byte[] Exactly(int count)
        {
            var bytes = new byte[count];
            for (int done = 0; done < count; )
            {
                int got = socket.Receive(bytes, done, count - done, SocketFlags.None);
                if (got == 0)
                    throw new TryllException(ErrorCode.ConnectionDropped, "The server has closed the connection.");
                done += got;
            }
            return bytes;
        }

        protected override void Write(byte[] payload)
        {
            var frame = new byte[4 + payload.Length];
            for (int number = 0; number < 4; ++number)
                frame[number] = (byte)(payload.Length >> 8 * number);
            payload.CopyTo(frame, 4);
            for (int done = 0; done < frame.Length; )
                done += socket.Send(frame, done, frame.Length - done, SocketFlags.None);
        }
    }
}
