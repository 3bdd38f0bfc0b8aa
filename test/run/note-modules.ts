/**
 * A program under test preloads this file. When it exits, the file writes the URLs of the loaded modules, one a line,
 * into the file $MODULES_FILE.
 */
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
