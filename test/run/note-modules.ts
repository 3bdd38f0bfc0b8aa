/** Preloaded into a program: writes the modules that it loads, one URL a line, into the file $MODULES_FILE at its end. */
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const loaded: string[] = [];
registerHooks({
  load(url, context, next) {
    loaded.push(url);
    return next(url, context);
  },
});
process.on('exit', () => writeFileSync(process.env['MODULES_FILE']!, loaded.join('\n')));
