import { pino } from 'pino';
import pretty from 'pino-pretty';

/**
 * Writes one event to the log. `fields` may contain ids, counts and times, but never a token, a secret, message text or
 * a target's path.
 */
type LogFunction = (event: string, fields?: Record<string, unknown>) => void;

export interface Log {
  readonly debug: LogFunction;
  readonly info: LogFunction;
  readonly warn: LogFunction;
  readonly error: LogFunction;
  /** Returns a log that adds these fields to every event. */
  child(fields: Record<string, unknown>): Log;
}

interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  /** `auto`: text on a terminal, JSON lines elsewhere. */
  readonly format: 'auto' | 'json' | 'text';
}

/** Creates a log on standard output. Lines are written synchronously, so that a kill -9 loses none of them. */
export function createLog(options: LogOptions): Log {
  const isTextFormat = options.format === 'text' || (options.format === 'auto' && process.stdout.isTTY);
  const destination = isTextFormat
    ? pretty({ sync: true, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l', colorize: process.stdout.isTTY })
    : pino.destination({ fd: 1, sync: true });
  const settings = { level: options.level, base: null, serializers: { error: describeError } };
  const timestamp = (): string => `,"time":"${new Date().toISOString()}"`;
  return wrapPino(pino(isTextFormat ? settings : { ...settings, timestamp }, destination));
}

/** Creates a log that drops everything, for tests and for commands that print their own lines. */
export function silentLog(): Log {
  const nothing = (): void => {};
  const log: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing, child: () => log };
  return log;
}

/**
 * The fields of an error that may be logged. Of a PostgreSQL error these are only its code, its constraint and its
 * primary message: `detail`, `query` and `parameters` contain data of rows. For Klatch's statements the primary message
 * has only types and limits.
 */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: typeof error };
  const { code, constraint_name: constraint } = error as { code?: unknown; constraint_name?: unknown };
  return {
    name: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    ...(constraint === undefined ? {} : { constraint }),
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
    at: error.stack
      ?.split('\n')
      .find((line) => line.trimStart().startsWith('at '))
      ?.trim(),
  };
}

function wrapPino(logger: pino.Logger): Log {
  const logAtLevel =
    (level: 'debug' | 'info' | 'warn' | 'error'): LogFunction =>
    (event, fields) =>
      logger[level](fields ?? {}, event);
  return {
    debug: logAtLevel('debug'),
    info: logAtLevel('info'),
    warn: logAtLevel('warn'),
    error: logAtLevel('error'),
    child: (fields) => wrapPino(logger.child(fields)),
  };
}
