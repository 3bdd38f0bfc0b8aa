import type { Command } from 'commander';

/** The interface that the program gives its chat commands: the process, and the parts that all commands share. */
export interface ChatContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly errorOutput: NodeJS.WriteStream;
  /** Adds command lines as examples to the end of a command's help. */
  readonly withExamples: (command: Command, examples: readonly string[]) => void;
  /** Adds the option to print a command's result as JSON. */
  readonly withJson: (command: Command) => Command;
  /** Parses an argument or an option's value as a whole number. */
  readonly wholeNumber: (min: number, max: number) => (text: string) => number;
  /** Refuses a name that is no command, and exits. */
  readonly refuseCommand: (command: Command, name: string) => never;
  /** Reads standard input to its end, as one text. */
  readonly readTextFromStdin: () => Promise<string>;
  readonly createPrompt: () => Prompt;
  readonly createStopSignals: () => StopSignals;
}

/** Asks a person at a terminal. The caller has to call `stop`, also after a failure. */
export interface Prompt {
  ask(question: Question): Promise<string>;
  say(...lines: readonly string[]): void;
  stop(): void;
}

/** A question for a person. */
interface Question {
  readonly text: string;
  /** Used when the person types nothing. */
  readonly defaultValue?: string;
  /** True: the terminal does not show the typed text. */
  readonly isTypingHidden?: boolean;
  /** The problem of an answer, as a sentence; null: it is valid. */
  readonly check: (answer: string) => string | null;
}

/** The signals that ask the process to stop. */
interface StopSignals {
  /** Resolves with the first signal. */
  readonly firstSignal: Promise<unknown>;
  start(): void;
  /** Restores the default action of the signals. */
  stop(): void;
}

/** Prints lines of a command's result on standard output. */
export function print(context: ChatContext, ...lines: readonly string[]): void {
  for (const line of lines) context.output.write(`${line}\n`);
}

/** Prints lines about failures and progress on standard error. */
export function printError(context: ChatContext, ...lines: readonly string[]): void {
  for (const line of lines) context.errorOutput.write(`${line}\n`);
}
