/** Runs before each file of `make test-fast`: makes a test fail that starts a process or a server. */
import { ChildProcess } from 'node:child_process';
import { Server, Socket } from 'node:net';

function refuse(): never {
  throw new Error('a test of `make test-fast` starts a process or a server: extend the rule in scripts/fast-tests.ts');
}

Object.assign(ChildProcess.prototype, { spawn: refuse });
Server.prototype.listen = refuse;
Socket.prototype.connect = refuse;
