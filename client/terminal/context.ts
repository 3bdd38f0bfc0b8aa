import type { Command } from 'commander';

/** What the program gives its chat commands: the process, and what all of its commands do in the same way. */
export interface ChatContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly errorOutput: NodeJS.WriteStream;
  /** Ends a command's help with lines that can be copied. */
  readonly withExamples: (command: Command, examples: readonly string[]) => void;
  /** Offers the result of a command as JSON. */
  readonly withJson: (command: Command) => Command;
  /** Reads an argument or an option's value that is a whole number. */
  readonly wholeNumber: (min: number, max: number) => (text: string) => number;
  /** Ends the command line with a name that no command has. */
  readonly refuseCommand: (command: Command, name: string) => never;
  /** Standard input to its end, as one text. */
  readonly readTextFromStdin: () => Promise<string>;
  readonly createPrompt: () => Prompt;
  readonly createStopSignals: () => StopSignals;
}

/** Asks a person at a terminal. `stop` has to be called, also after a failure. */
export interface Prompt {
  ask(question: Question): Promise<string>;
  say(...lines: readonly string[]): void;
  stop(): void;
}

/** What a person is asked. */
interface Question {
  readonly text: string;
  /** Taken when nothing is typed. */
  readonly defaultValue?: string;
  /** True: what is typed is not shown. */
  readonly isTypingHidden?: boolean;
  /** What is wrong with an answer, as a sentence, or null. */
  readonly check: (answer: string) => string | null;
}

/** The signals that ask the process to stop. */
interface StopSignals {
  /** Resolves with the first one. */
  readonly firstSignal: Promise<unknown>;
  start(): void;
  /** From now on signals do what they do by default. */
  stop(): void;
}

/** Prints lines for whoever reads the command's result. */
export function print(context: ChatContext, ...lines: readonly string[]): void {
  for (const line of lines) context.output.write(`${line}\n`);
}

/** Prints lines about what went wrong or goes on. */
export function printError(context: ChatContext, ...lines: readonly string[]): void {
  for (const line of lines) context.errorOutput.write(`${line}\n`);
}
