import type { Socket } from 'node:net';
import { receiverFault } from './receiver-faults.ts';
import type { Fault } from './fault.ts';
import { take, type Behaviour } from './receiver.ts';

const ANSWER_BYTES = 10 * 1024 ** 3;
const CHUNK = Buffer.alloc(64 * 1024, '.');
/**
 * The most bytes of one answer that may leave the receiver: the server reads 64 KiB, and the kernel's buffers hold the
 * rest.
 */
const TAKEN_MAX_BYTES = 16 * 1024 ** 2;
/** The number of endless answers that each struck hook gets in a run. */
const ANSWERS = 3;

/**
 * The receiver sends answers of 10 GB as fast as the server reads. They have a content length, or they are chunked
 * without a last chunk.
 */
export const answerSizeFault: Fault = receiverFault(
  { name: 'endless', title: 'receiver sends 10 GB' },
  async (stage) => {
    let mostBytes = 0;
    const pump = (socket: Socket, chunk: Buffer, before: number): void => {
      const write = (): void => {
        while (!socket.destroyed && sent < ANSWER_BYTES) {
          sent += chunk.length;
          if (!socket.write(chunk)) return;
        }
      };
      let sent = 0;
      socket.on('drain', write);
      socket.once('close', () => {
        mostBytes = Math.max(mostBytes, socket.bytesWritten - before - socket.writableLength);
      });
      write();
    };
    const withLength: Behaviour = ({ take, socket }) => {
      take();
      const before = socket.bytesWritten;
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${ANSWER_BYTES}\r\n\r\n`);
      pump(socket, CHUNK, before);
    };
    const chunked: Behaviour = ({ take, socket }) => {
      take();
      const before = socket.bytesWritten;
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      pump(
        socket,
        Buffer.concat([Buffer.from(`${CHUNK.length.toString(16)}\r\n`), CHUNK, Buffer.from('\r\n')]),
        before,
      );
    };
    return {
      stage,
      strike: async (run) => {
        stage.struck.behave = run % 2 === 0 ? withLength : chunked;
        await stage.struckAreAnswered(ANSWERS);
        stage.struck.behave = take;
        stage.faultEnds();
      },
      violations: () => {
        if (mostBytes <= TAKEN_MAX_BYTES) return [];
        return [`the server let ${mostBytes} bytes of one answer come`];
      },
      remark: () => `at most ${(mostBytes / 1024 ** 2).toFixed(1)} MiB of an answer left the receiver`,
    };
  },
);
