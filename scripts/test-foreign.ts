/**
 * `make foreign-test`: runs the tests that need programs of Debian (test/foreign). As root it installs missing ones,
 * and starts no daemon. Unlike in `make test`, a skipped test is a failure. Its last line is that of scripts/test.ts.
 * `QUICK=1` leaves out the tests of the browser in `LONG_BROWSER_TESTS`.
 */
import { closingLine, countsOf } from './closing-line.ts';
import { runJest } from './jest.ts';
import { requireTools } from './package/tools.ts';

const callers = [
  'prometheus-alertmanager',
  'apprise',
  'borgmatic',
  '/usr/lib/netdata/plugins.d/alarm-notify.sh',
  '/usr/share/doc/ruby-slack-notifier',
  '/usr/share/doc/ruby-discordrb-webhooks',
  '/usr/share/doc/python3-python-telegram-bot',
  'monit',
  '/usr/share/smartmontools/smartd_warning.sh',
  'nagios4',
  'icinga2',
  '/usr/share/doc/ruby-slack-messenger',
  '/usr/share/doc/php-curl',
  '/usr/share/doc/php-monolog',
  '/usr/share/doc/php-symfony-discord-notifier',
] as const;
/**
 * The tests that `.ci/run` skips (`QUICK=1`), so that it opens the browser for at most four minutes. Most test one
 * screen each. The other files test what these screens share: sign-in, messages, files, keys and lost history.
 */
const LONG_BROWSER_TESTS = [
  'accessibility/screens',
  'directory',
  'group-panel',
  'hostile-texts',
  'mentions',
  'own-files',
  'people',
  'pictures',
  'reconnect',
  'redirected-files',
  'session-end',
  'settings',
  'typing',
  'undo-delete',
] as const;
const isQuick = (process.env['QUICK'] ?? '') !== '';
const leftOut = isQuick
  ? [`--testPathIgnorePatterns=/test/package/|/web/(${LONG_BROWSER_TESTS.join('|')})\\.test`]
  : [];

const receivers = ['webhook', '/usr/bin/php', '/usr/bin/python3', 'openssl'] as const;
requireTools(['curl', 'chromium', '/usr/sbin/nginx', ...callers, ...receivers], { startsDaemons: false });
const { result, status } = runJest([...leftOut, ...process.argv.slice(2)], { env: { KLATCH_FOREIGN_TESTS: '1' } });
const counts = countsOf(result);
if (counts.skipped > 0) console.error(`foreign-test: ${counts.skipped} skipped: here nothing may be`);
console.log(closingLine('foreign-test', counts));
process.exitCode = status !== 0 || !result.success || counts.passed === 0 || counts.skipped > 0 ? 1 : 0;
