import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';

/** A script of the bundle, as the loader gets it. */
export interface ScriptSource {
  /** The script as an expression, made by `wrapScript`. */
  readonly text: string;
  /** V8's compiled code from the build of the binary; V8 ignores code of another version or with other flags. */
  readonly codeCache: Buffer | undefined;
}

/** The sources of the modules that scripts load. */
export interface LoaderOptions {
  /** The source of a script by its name, such as `klatch.cjs`. */
  readonly find: (name: string) => ScriptSource;
  /** A module of Node by its name. */
  readonly builtin: (name: string) => unknown;
  /** The folder in which scripts look for files; inside the binary they read assets instead. */
  readonly dirname?: string;
}

type Evaluate = (
  exports: unknown,
  require: (name: string) => unknown,
  module: { exports: unknown },
  filename: string,
  dirname: string,
) => void;

/** The ending of the name of a code cache, after the whole name of its script. */
export const CODE_CACHE = '.cache';
/** The folder of the binary's scripts in stack traces; it does not exist. */
const FOLDER = '/klatch';

/** Wraps a script into the expression of a function, as Node wraps CommonJS modules. */
export function wrapScript(text: string): string {
  return `(function (exports, require, module, __filename, __dirname) {${text}\n})`;
}

/**
 * Loads the scripts of the bundle where no folder contains them: inside the single binary, and where its code cache is
 * made. Node's own loader reads files only, and accepts no code cache that ships with the program.
 */
export class ModuleLoader {
  /** The loaded scripts, by name. */
  readonly scripts = new Map<string, Script>();
  readonly #modules = new Map<string, { exports: unknown }>();
  readonly #options: LoaderOptions;

  constructor(options: LoaderOptions) {
    this.#options = options;
  }

  /** The exports of a script, which it evaluates at the first load. */
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
    // Libraries try to load optional ones (ws loads bufferutil) and check this code.
    throw Object.assign(new Error(`Cannot find module '${wanted}'`), { code: 'MODULE_NOT_FOUND' });
  }
}
