import { valueAt, type ObjectValue, type Value } from '../../packages/hocon/src/index.ts';
import type { ConfigProblem } from './problem.ts';
import { readKeyPair } from './endpoint-tls.ts';
import { isJson } from './keys/google-key.ts';
import { readAppleKey, readCaFile, readServiceAccount, webPushPairProblem } from './keys/push-keys.ts';
import type { LocatedPath } from './scalars.ts';
import type { SettingKey, Settings } from './schema.ts';
import { isReadableByOthers } from './keys/server-key-files.ts';
import { problemAt } from './settings.ts';

/**
 * Problems and warnings about key files (cryptographic keys), and about keys of the configuration that do not fit
 * together.
 */
export interface KeyFindings {
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

type AllOrNoneSection = 'services.web-push' | 'services.aws.s3' | 'services.postgresql';

/**
 * Checks the settings of push services, file store and database, and the files with keys that they name. Each problem
 * or warning has the position of its setting.
 */
export function checkServiceKeys(settings: Partial<Settings>, root: ObjectValue): KeyFindings {
  const google = checkGooglePushKeys(settings);
  const apple = checkApplePushKeys(settings);
  const database = checkDatabaseTls(settings, root);
  const problems = [
    ...google.problems,
    ...apple.problems,
    ...checkWebPushKeys(settings, root),
    ...checkAllOrNone('services.aws.s3', ['default-bucket', 'access-key', 'secret-key'], settings, root),
    ...database.problems,
  ];
  const unused = checkUnusedFileLocation(settings, root);
  return { problems, warnings: [...google.warnings, ...apple.warnings, ...database.warnings, ...unused] };
}

function checkGooglePushKeys(settings: Partial<Settings>): KeyFindings {
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const name = 'services.google.push.keys';
  const seenProjectIds = new Set<string>();
  for (const [index, { 'project-id': projectId, key }] of (settings[name] ?? []).entries()) {
    const at = (sentence: string): ConfigProblem => problemAt(`${name}[${index}].key`, key.value, sentence);
    const account = readServiceAccount(projectId, key.path);
    if (typeof account === 'string') problems.push(at(account));
    else if (!isJson(key.path)) warnings.push(...readableByOthersWarning(key.path, at));
    if (seenProjectIds.has(projectId)) problems.push(at(`there is a key of ${projectId} already`));
    seenProjectIds.add(projectId);
  }
  return { problems, warnings };
}

function checkApplePushKeys(settings: Partial<Settings>): KeyFindings {
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const name = 'services.apple.push.keys';
  const seenBundleIds = new Set<string>();
  for (const [index, { path, 'bundle-id': bundleId }] of (settings[name] ?? []).entries()) {
    const at = (sentence: string): ConfigProblem => problemAt(`${name}[${index}].path`, path.value, sentence);
    const key = readAppleKey(path.path);
    if (typeof key === 'string') problems.push(at(key));
    else warnings.push(...readableByOthersWarning(path.path, at));
    if (seenBundleIds.has(bundleId)) problems.push(at(`there is a key of ${bundleId} already`));
    seenBundleIds.add(bundleId);
  }
  const authority = settings['services.apple.push.ca-file'] ?? null;
  const read = authority === null ? null : readCaFile(authority.path);
  if (typeof read === 'string') problems.push(problemAt('services.apple.push.ca-file', authority!.value, read));
  return { problems, warnings };
}

function checkDatabaseTls(settings: Partial<Settings>, root: ObjectValue): KeyFindings {
  const mode = settings['services.postgresql.tls'];
  const authority = settings['services.postgresql.ca-file'] ?? null;
  const certificate = settings['services.postgresql.certificate'] ?? null;
  const key = settings['services.postgresql.key'] ?? null;
  const problems = checkAllOrNone('services.postgresql', ['certificate', 'key'], settings, root);
  const warnings: ConfigProblem[] = [];
  const at = (name: 'ca-file' | 'certificate' | 'key', { value }: LocatedPath, sentence: string): ConfigProblem =>
    problemAt(`services.postgresql.${name}`, value, sentence);
  if (authority !== null) {
    const read = readCaFile(authority.path);
    if (typeof read === 'string') problems.push(at('ca-file', authority, read));
    const unused = 'is not used: only tls = verify-full looks at the certificate of the server';
    if (mode !== undefined && mode !== 'verify-full') warnings.push(at('ca-file', authority, unused));
  }
  if (certificate !== null && key !== null) {
    const pair = readKeyPair({ certificate: certificate.path, key: key.path });
    if (!('pem' in pair)) problems.push(at(pair.which, pair.which === 'key' ? key : certificate, pair.sentence));
    else warnings.push(...readableByOthersWarning(key.path, (sentence) => at('key', key, sentence)));
    if (mode === 'disable')
      warnings.push(at('certificate', certificate, 'is not used: services.postgresql.tls is disable'));
  }
  return { problems, warnings };
}

/**
 * Warns if every user can read the file of a key. The message may contain the path: the file was read, so it really is
 * a path and not the key itself.
 */
function readableByOthersWarning(path: string, at: (sentence: string) => ConfigProblem): ConfigProblem[] {
  return isReadableByOthers(path) ? [at(`${path} can be read by every user of this machine: chmod o-r`)] : [];
}

function checkWebPushKeys(settings: Partial<Settings>, root: ObjectValue): ConfigProblem[] {
  const lacking = checkAllOrNone('services.web-push', ['public', 'private', 'subject'], settings, root);
  const publicKey = settings['services.web-push.public'] ?? null;
  const privateKey = settings['services.web-push.private'] ?? null;
  if (publicKey === null || privateKey === null) return lacking;
  const wrong = webPushPairProblem(publicKey, privateKey);
  const key = 'services.web-push.private';
  return wrong === null ? lacking : [...lacking, problemAt(key, valueOrRoot(key, root), wrong)];
}

/**
 * Checks keys of the configuration that work only if all of them are set. The problem has the position of the first key
 * that is set, and names the missing ones.
 */
function checkAllOrNone(
  section: AllOrNoneSection,
  keyNames: readonly string[],
  settings: Partial<Settings>,
  root: ObjectValue,
): ConfigProblem[] {
  const keys = keyNames.map((name) => `${section}.${name}` as SettingKey);
  const set = keys.find((key) => (settings[key] ?? null) !== null);
  // Only null means "not set". An undefined key was refused or has a placeholder, which is reported already.
  const unset = keys.filter((key) => settings[key] === null);
  if (set === undefined || unset.length === 0) return [];
  const missing = unset.join(' and ');
  const sentence = `is of no use without ${missing}: set ${unset.length === 1 ? 'it' : 'both'} too, or none of them`;
  return [problemAt(set, valueOrRoot(set, root), sentence)];
}

function checkUnusedFileLocation(settings: Partial<Settings>, root: ObjectValue): ConfigProblem[] {
  const key = 'services.file-storage.location';
  const bucket = settings['services.aws.s3.default-bucket'] ?? null;
  if ((settings[key] ?? null) === null || bucket === null) return [];
  const sentence = 'is not used: files are kept in the bucket of services.aws.s3';
  return [problemAt(key, valueOrRoot(key, root), sentence)];
}

function valueOrRoot(key: SettingKey, root: ObjectValue): Value {
  return valueAt(root, key.split('.')) ?? root;
}
