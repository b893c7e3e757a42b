import type { Bytes, Channel, Message } from './model';

/** Sentence of a view whose kernel was restarted. */
export const GONE = 'The kernel was restarted; run the cell again.';

export interface Answer<Content> {
  content: Content;
  buffers: DataView[];
}

interface Waiting {
  resolve(answer: Answer<never>): void;
  reject(error: Error): void;
}

/** Asks the kernel for something and gives the answer. */
export class Line {
  /** Called when a question cannot be sent. */
  onGone?: () => void;

  private count = 0;
  // Answers reach every line of the model: each view of it has one, and so has what waits for a kernel.
  private readonly id = Math.random().toString(36).slice(2);
  private readonly waiting = new Map<string, Waiting>();

  constructor(private readonly channel: Channel) {
    channel.on('msg:custom', this.onMessage);
  }

  /** Ask a question that `answer_<type>` of the widget in Python answers. */
  ask<Content = unknown>(type: string, more: object = {}): Promise<Answer<Content>> {
    const request = `${this.id}-${++this.count}`;
    return new Promise((resolve, reject) => {
      this.waiting.set(request, { resolve, reject });
      try {
        this.channel.send({ type, request, ...more });
      } catch {
        // JupyterLab's own error is "Cannot send"
        this.waiting.delete(request);
        reject(new Error(GONE));
        this.onGone?.();
      }
    });
  }

  /** End all questions with an error: no answer comes any more. */
  fail(message: string): void {
    for (const { reject } of this.waiting.values()) reject(new Error(message));
    this.waiting.clear();
  }

  close(): void {
    this.channel.off('msg:custom', this.onMessage);
    this.waiting.clear();
  }

  private readonly onMessage = (content: Message, buffers?: Bytes[]): void => {
    const request = content.request ?? '';
    const asked = this.waiting.get(request);
    if (!asked) return;
    this.waiting.delete(request);
    if (content.error) asked.reject(new Error(content.error));
    else asked.resolve({ content: content as never, buffers: (buffers ?? []).map(viewed) });
  };
}

function viewed(bytes: Bytes): DataView {
  if (bytes instanceof DataView) return bytes;
  return ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes);
}

/** Return the text of an error that a question ended with. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
