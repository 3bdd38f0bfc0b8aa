/** `npm run web`: builds the browser client into build/web, from where a server of the source tree serves it. */
import { buildWeb } from './package/web.ts';

await buildWeb();
