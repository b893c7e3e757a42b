import { PageModel, WidgetMessage } from './page-model';

/** A message of the server: for a widget, or the answer to a question of the page. */
type ServerMessage = { sizes: number[] } & (
  | { type: 'comm_msg'; comm: string; data: WidgetMessage }
  | { type: 'comm_close'; comm: string }
  | { type: 'failed'; request: number; error: string }
  | { type: 'answer'; request: number }
);

interface Waiting {
  resolve(answer: never): void;
  reject(error: Error): void;
}

/** The socket of the page: questions with answers, and the messages of the models. */
export class PageSocket {
  private readonly models = new Map<string, PageModel>();
  private readonly waiting = new Map<number, Waiting>();
  private readonly socket: WebSocket;
  private readonly ready: Promise<unknown>;
  private count = 0;

  constructor(address: string, onEnd: () => void) {
    this.socket = new WebSocket(address);
    this.socket.binaryType = 'arraybuffer';
    this.ready = new Promise(resolve => this.socket.addEventListener('open', resolve));
    this.socket.addEventListener('message', event => this.receive(event.data as ArrayBuffer));
    this.socket.addEventListener('close', () => {
      for (const { reject } of this.waiting.values()) reject(new Error('The connection to ducklake-lab has ended.'));
      this.waiting.clear();
      onEnd();
    });
  }

  send(message: object): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  async ask<Answer>(type: string, more: object = {}): Promise<Answer> {
    const request = ++this.count;
    const answer = new Promise<Answer>((resolve, reject) => this.waiting.set(request, { resolve, reject }));
    await this.ready;
    this.send({ type, request, ...more });
    return answer;
  }

  /** Return the model of a comm; its state comes before the answer that names it. */
  model(id: string): PageModel {
    const model = this.models.get(id) ?? new PageModel(this, id);
    this.models.set(id, model);
    return model;
  }

  /** Read a message: the length of its JSON, the JSON, and the buffers whose sizes it lists. */
  private receive(data: ArrayBuffer): void {
    const length = new DataView(data).getUint32(0, true);
    const message = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length))) as ServerMessage;
    let at = 4 + length;
    const buffers = message.sizes.map(size => {
      at += size;
      return new DataView(data, at - size, size);
    });
    if (message.type === 'comm_msg') this.model(message.comm).receive(message.data, buffers);
    else if (message.type === 'comm_close') this.models.delete(message.comm);
    else {
      const asked = this.waiting.get(message.request);
      this.waiting.delete(message.request);
      if (message.type === 'failed') asked?.reject(new Error(message.error));
      else asked?.resolve(message as never);
    }
  }
}
