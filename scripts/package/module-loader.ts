import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';

/** What a loader knows of a script of the bundle. */
export interface ScriptSource {
  /** The script as an expression: `wrapScript`. */
  readonly text: string;
  /** What V8 compiled it to when the binary was made; V8 ignores one of another version or with other flags. */
  readonly codeCache: Buffer | undefined;
}

/** Where a loader finds what scripts ask for. */
export interface LoaderOptions {
  /** The source of a script by its name, such as `klatch.cjs`. */
  readonly find: (name: string) => ScriptSource;
  /** A module of Node by its name. */
  readonly builtin: (name: string) => unknown;
  /** The folder in which scripts look for files; inside the binary they ask for assets instead. */
  readonly dirname?: string;
}

type Evaluate = (
  exports: unknown,
  require: (name: string) => unknown,
  module: { exports: unknown },
  filename: string,
  dirname: string,
) => void;

/** What is behind the name of a script in the name of its code cache. */
export const CODE_CACHE = '.cache';
/** The folder that scripts of the binary seem to be in, as stack traces show it; nothing is there. */
const FOLDER = '/klatch';

/** A script as the expression of a function, as Node wraps CommonJS modules. */
export function wrapScript(text: string): string {
  return `(function (exports, require, module, __filename, __dirname) {${text}\n})`;
}

/**
 * Loads the scripts of the bundle where there is no folder to load them from: inside the single binary, and where its
 * code cache is made. Node's own loader reads files alone, and takes no code cache that ships with the program.
 */
export class ModuleLoader {
  /** The scripts that were loaded, by name. */
  readonly scripts = new Map<string, Script>();
  readonly #modules = new Map<string, { exports: unknown }>();
  readonly #options: LoaderOptions;

  constructor(options: LoaderOptions) {
    this.#options = options;
  }

  /** The exports of a script, which is evaluated when it is loaded for the first time. */
  load(name: string): unknown {
    const loaded = this.#modules.get(name);
    if (loaded !== undefined) return loaded.exports;
    const module = { exports: {} as unknown };
    this.#modules.set(name, module);
    const { text, codeCache } = this.#options.find(name);
    const filename = `${FOLDER}/${name}`;
    const script = new Script(text, { filename, ...(codeCache === undefined ? {} : { cachedData: codeCache }) });
    this.scripts.set(name, script);
    const evaluate = script.runInThisContext() as Evaluate;
    const { dirname = FOLDER } = this.#options;
    evaluate(module.exports, (wanted) => this.#require(wanted), module, join(dirname, name), dirname);
    return module.exports;
  }

  #require(wanted: string): unknown {
    if (wanted.startsWith('./')) return this.load(wanted.slice(2));
    if (isBuiltin(wanted)) return this.#options.builtin(wanted);
    // Libraries look for optional ones (ws for bufferutil) and go by the code.
    throw Object.assign(new Error(`Cannot find module '${wanted}'`), { code: 'MODULE_NOT_FOUND' });
  }
}
