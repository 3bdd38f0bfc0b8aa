import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { findConfigFile } from '../../config/tree.ts';
import { silentLog } from '../../log.ts';
import { DEVICE_TOKEN_SEAL_PURPOSE } from '../../model/device.ts';
import { INCOMING_SECRET_SEAL_PURPOSE } from '../../model/incoming-secret.ts';
import { DataDirLock } from '../../data-dir/lock.ts';
import { openDatabase } from '../../storage/open-database.ts';
import { rotateSealedCountingByPurpose } from '../../storage/rotate-secret.ts';
import { Sealer } from '../../storage/db/sealed.ts';
import { type CommandContext, print, printJson } from '../core/context.ts';
import { exitCodes } from '../core/exit-codes.ts';
import { CommandError } from '../core/failure.ts';
import { configFlag, withExamples, withJson } from '../core/options.ts';
import { Prompt } from '../core/prompt.ts';
import { dropPrivileges } from '../core/privileges.ts';
import { readSecretFile } from '../core/secret-file.ts';

interface RotateSecretOptions {
  readonly oldSecretFile?: string;
  readonly json?: boolean;
}

export function addRotateServerSecret(keys: Command, context: CommandContext): void {
  const rotateCommand = keys
    .command('rotate-secret')
    .description(
      'move what the database keeps sealed from an old secret to the one in server.conf; the server must not run',
    )
    .option('--old-secret-file <file>', 'a file that holds the old secret; - is standard input (default: ask for it)')
    .action(async (options: RotateSecretOptions, self: Command) => {
      const file = findConfigFile({
        configOption: configFlag(self),
        env: context.env,
        programBinDir: context.programBinDir,
      });
      const { config } = loadConfig(file, { env: context.env });
      const countByPurpose = await rotateSecretCountingByPurpose(
        config,
        await readOldSecret(context, options.oldSecretFile),
      );
      reportRotation(context, countByPurpose, options);
    });
  withExamples(withJson(rotateCommand), [
    'klatch keys rotate-secret --old-secret-file /root/old-secret',
    'klatch keys rotate-secret --old-secret-file - < /root/old-secret',
  ]);
}

/**
 * Re-encrypts all sealed values, from the old secret to the configured one. Resolves to the number of values by
 * purpose. Holds the lock of the data directory meanwhile. Rejects with DataDirLockedError while a server uses the
 * directory.
 */
async function rotateSecretCountingByPurpose(config: Config, oldSecret: string): Promise<ReadonlyMap<string, number>> {
  dropPrivileges(config.dataDir);
  const lock = await DataDirLock.acquire(config.dataDir);
  try {
    const opened = await openDatabase(config, { sealer: null, log: silentLog() });
    try {
      const sealers = { oldSealer: new Sealer(oldSecret), newSealer: new Sealer(config.secret) };
      return await rotateSealedCountingByPurpose(opened.database.general, sealers);
    } finally {
      await opened.stop();
    }
  } finally {
    await lock.release();
  }
}

/**
 * Reads the old secret from a file or the terminal. It is no argument, since every user of the machine can read those
 * in the process list.
 */
async function readOldSecret(context: CommandContext, file: string | undefined): Promise<string> {
  if (file === undefined) return askOldSecret(context);
  return readSecretFile(context, '--old-secret-file', file);
}

async function askOldSecret({ input, errorOutput: errors }: CommandContext): Promise<string> {
  if (!input.isTTY || !errors.isTTY) {
    const sentence =
      'nobody can be asked for the old secret here: give --old-secret-file FILE, or - for standard input';
    throw new CommandError(exitCodes.usage, sentence);
  }
  const prompt = new Prompt(input, errors);
  try {
    return await prompt.ask({ text: 'Old secret (not shown)', isTypingHidden: true, check: () => null });
  } finally {
    prompt.stop();
  }
}

function reportRotation(
  context: CommandContext,
  countByPurpose: ReadonlyMap<string, number>,
  { json }: RotateSecretOptions,
): void {
  const resealedTokenCount = countByPurpose.get('integration-token') ?? 0;
  const resealedIncomingSecretCount = countByPurpose.get(INCOMING_SECRET_SEAL_PURPOSE) ?? 0;
  const resealedHookSecretCount = countByPurpose.get('hook-secret') ?? 0;
  const resealedInvitationCount = countByPurpose.get('group-invite') ?? 0;
  const resealedDeviceCount = countByPurpose.get(DEVICE_TOKEN_SEAL_PURPOSE) ?? 0;
  if (json === true) {
    const counts = {
      integration_tokens: resealedTokenCount,
      incoming_secrets: resealedIncomingSecretCount,
      hook_secrets: resealedHookSecretCount,
      invitations: resealedInvitationCount,
      devices: resealedDeviceCount,
    };
    printJson(context, counts);
    return;
  }
  if (
    resealedTokenCount +
      resealedIncomingSecretCount +
      resealedHookSecretCount +
      resealedInvitationCount +
      resealedDeviceCount ===
    0
  ) {
    print(context, 'Nothing to do: all there is in the database opens with the secret in server.conf.');
    return;
  }
  const countText = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
  const countIfAny = (number: number, noun: string): string => (number === 0 ? '' : `${countText(number, noun)}, `);
  const otherCounts = `${countIfAny(resealedDeviceCount, 'device')}${countIfAny(resealedInvitationCount, 'invitation')}${countIfAny(resealedIncomingSecretCount, 'incoming secret')}`;
  const what = `${otherCounts}${countText(resealedTokenCount, 'integration token')} and ${countText(resealedHookSecretCount, 'hook secret')}`;
  print(context, `Moved ${what}: the database opens with the secret in server.conf.`);
}
