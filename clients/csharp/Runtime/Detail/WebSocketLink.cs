using System;
using System.IO;
using System.Net.WebSockets;
using System.Threading;

namespace Trunkline.Tryll
{
    /// <summary>WebSocket: each payload is one binary message.</summary>
    internal sealed class WebSocketLink : Link
    {
        readonly Uri address;
        readonly ClientWebSocket socket = new ClientWebSocket();
        readonly CancellationTokenSource over = new CancellationTokenSource();

        public WebSocketLink(string address)
        {
            this.address = new Uri(address);
            Start();
        }

        protected override void Open()
        {
            socket.ConnectAsync(address, over.Token).GetAwaiter().GetResult();
        }

        protected override void Shut()
        {
            over.Cancel();
            socket.Abort();
        }

        protected override byte[] Read()
        {
            var buffer = new byte[16384];
            using (var message = new MemoryStream())
            {
                while (true)
                {
                    var got = socket.ReceiveAsync(new ArraySegment<byte>(buffer), over.Token).GetAwaiter().GetResult();
                    if (got.MessageType == WebSocketMessageType.Close)
                        throw new TryllException(ErrorCode.ConnectionDropped, "The server has closed the connection.");
                    if (message.Length + got.Count > Protocol.MaxFrame)
                        throw new TryllException(ErrorCode.FrameTooLarge);
                    message.Write(buffer, 0, got.Count);
                    if (got.EndOfMessage)
                        return message.ToArray();
                }
            }
        }

        protected override void Write(byte[] payload)
        {
            var sent = socket.SendAsync(new ArraySegment<byte>(payload), WebSocketMessageType.Binary, true, over.Token);
            sent.GetAwaiter().GetResult();
        }
    }
}
