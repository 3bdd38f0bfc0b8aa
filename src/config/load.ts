import { resolve } from 'node:path';
import { readAsset } from '../assets.ts';
import type { ObjectValue, HoconWarning } from '../../packages/hocon/src/index.ts';
import { MAX_KEYS_THAT_SIGN } from '../model/server-key.ts';
import { buildConfig, buildEndpoint, type Config } from './config.ts';
import { readTls } from './endpoint-tls.ts';
import { redactAndExcerpt } from './excerpt.ts';
import { ConfigError, NotConfiguredError, formatProblem } from './problem.ts';
import type { ConfigProblem } from './problem.ts';
import { ConfigSourceFile } from './public-text.ts';
import { settingEntries } from './schema.ts';
import { readEmailTemplate } from './email-template.ts';
import type { Settings } from './schema.ts';
import { checkServerKeyPair, isReadableByOthers } from './keys/server-key-files.ts';
import { checkServiceKeys } from './service-checks.ts';
import type { KeyFindings } from './service-checks.ts';
import { problemAt, readSettings } from './settings.ts';
import { readTreeFromSources, REFERENCE_NAME, type Environment } from './tree.ts';
import { syntaxWarnings } from './syntax-warnings.ts';

/** A configuration, its warnings, and the parsed tree that it was made from, which `klatch config show` needs. */
export interface LoadedConfig {
  readonly config: Config;
  /** One line for each warning: `file:line:column: key: sentence`. */
  readonly warnings: readonly string[];
  readonly root: ObjectValue;
}

/**
 * Reads the configuration, with the defaults of reference.conf. Throws NotConfiguredError if placeholders are left or
 * keys without a default are missing, otherwise ConfigError for other problems. Either error contains all problems that
 * were found.
 */
export function loadConfig(file: string, options: { readonly env: Environment }): LoadedConfig {
  const sources = new Map<string, ConfigSourceFile>();
  const hoconWarnings: HoconWarning[] = [];
  const root = readTreeFromSources(
    [{ name: REFERENCE_NAME, text: readAsset('config/reference.conf') }, { path: file }],
    options.env,
    {
      onFile: (path, text) => sources.set(path, new ConfigSourceFile(text)),
      onWarning: (warning) => hoconWarnings.push(warning),
    },
  );
  const makeSafeToShow = (found: readonly ConfigProblem[]): ConfigProblem[] =>
    found.map((each) => redactAndExcerpt(each, sources));
  const reading = readSettings(root, file);
  const { settings } = reading;
  const serverKeyFindings = checkServerKeyFiles(settings);
  const serviceFindings = checkServiceKeys(settings, root);
  const fileProblems = [
    ...serverKeyFindings.problems,
    ...serviceFindings.problems,
    ...checkEmailTemplate(settings),
    ...checkEndpointTlsFiles(settings),
  ];
  const problems = makeSafeToShow([...reading.problems, ...fileProblems]);
  // Warnings are shown together with problems, since a missing key may exist under a misspelt name.
  const readingWarnings = makeSafeToShow([...reading.warnings, ...syntaxWarnings(hoconWarnings)]);
  if (reading.missing.length > 0)
    throw new NotConfiguredError(makeSafeToShow(reading.missing), [...problems, ...readingWarnings]);
  if (problems.length > 0) throw new ConfigError([...problems, ...readingWarnings]);
  if (!isComplete(settings)) throw new Error('A key of the configuration was neither read nor refused.');
  const clashes = findPortConflicts(settings, file);
  if (clashes.length > 0) throw new ConfigError([...clashes, ...readingWarnings]);
  const warnings = [
    ...readingWarnings,
    ...makeSafeToShow([
      ...serverKeyFindings.warnings,
      ...serviceFindings.warnings,
      ...doubtfulValueWarnings(settings, file),
    ]),
  ];
  return { config: buildConfig(resolve(file), settings), warnings: warnings.map(formatProblem), root };
}

function isComplete(settings: Partial<Settings>): settings is Settings {
  return settingEntries().every(([key]) => settings[key] !== undefined);
}

/**
 * Checks the key files of `modules.security.server-keys`. Each problem or warning has the position of the line that
 * names the file.
 */
function checkServerKeyFiles(settings: Partial<Settings>): KeyFindings {
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const key = 'modules.security.server-keys';
  for (const [index, pair] of (settings[key] ?? []).entries()) {
    const pairProblems = checkServerKeyPair({ public: pair.public.path, private: pair.private.path });
    for (const { which, sentence } of pairProblems) {
      problems.push(problemAt(`${key}[${index}].${which}`, pair[which].value, sentence));
    }
    if (isReadableByOthers(pair.private.path)) {
      const sentence = `${pair.private.path} can be read by every user of this machine: chmod o-r`;
      warnings.push(problemAt(`${key}[${index}].private`, pair.private.value, sentence));
    }
    if (index === MAX_KEYS_THAT_SIGN) {
      warnings.push(
        problemAt(`${key}[${index}]`, pair.public.value, `only the first ${MAX_KEYS_THAT_SIGN} pairs sign`),
      );
    }
  }
  return { problems, warnings };
}

/**
 * Checks the template of e-mails with activation codes. A problem has the position of the line that names the
 * template's file, and its sentence names the line in the template.
 */
function checkEmailTemplate(settings: Partial<Settings>): ConfigProblem[] {
  const template = settings['services.smtp.template'] ?? null;
  if (template === null) return [];
  const emailTemplate = readEmailTemplate(template.path);
  return typeof emailTemplate === 'string' ? [problemAt('services.smtp.template', template.value, emailTemplate)] : [];
}

/** Checks the TLS certificates and keys of `endpoints`. */
function checkEndpointTlsFiles(settings: Partial<Settings>): ConfigProblem[] {
  return (settings.endpoints ?? []).flatMap((endpoint, index) => {
    const tlsOrProblem = readTls(buildEndpoint(endpoint));
    if (tlsOrProblem === null || 'pem' in tlsOrProblem) return [];
    const { which, sentence } = tlsOrProblem;
    return [problemAt(`endpoints[${index}].${which}`, endpoint[which]!.value, sentence)];
  });
}

/** Finds ports that two listeners have in common: the second one could not listen. */
function findPortConflicts(settings: Settings, file: string): ConfigProblem[] {
  const listeners = [
    { key: 'http.port', host: settings['http.interface'], port: settings['http.port'] },
    ...(settings['metrics.enabled']
      ? [{ key: 'metrics.port', host: settings['metrics.interface'], port: settings['metrics.port'] }]
      : []),
    ...settings.endpoints.map((endpoint, index) => {
      const { interface: host, port } = buildEndpoint(endpoint);
      return { key: `endpoints[${index}].port`, host, port };
    }),
  ];
  return listeners.flatMap(({ key, host, port }, index) => {
    const listenerWithSamePort = listeners
      .slice(0, index)
      .find((other) => other.port === port && port !== 0 && listenAddressesOverlap(other.host, host));
    if (listenerWithSamePort === undefined) return [];
    const sentence = `is ${port} like ${listenerWithSamePort.key}, on the same interface: Klatch cannot listen there twice`;
    return [{ file, line: null, key, sentence }];
  });
}

/**
 * True if two listeners at these addresses cannot have the same port. `::` includes all addresses, 0.0.0.0 all IPv4
 * addresses.
 */
function listenAddressesOverlap(one: string, other: string): boolean {
  if (one === other || one === '::' || other === '::') return true;
  return (one === '0.0.0.0' && !other.includes(':')) || (other === '0.0.0.0' && !one.includes(':'));
}

/** Warnings about settings that are valid but probably not intended. */
function doubtfulValueWarnings(settings: Settings, file: string): ConfigProblem[] {
  const warnings: ConfigProblem[] = [];
  const uri = settings['services.klatch-activation.uri'];
  const token = settings['services.klatch-activation.auth-token'];
  if ((uri === null) !== (token === null)) {
    const [set, unset] = uri === null ? ['auth-token', 'uri'] : ['uri', 'auth-token'];
    const sentence = `is not set beside ${set}: no activation code will be sent through the gate`;
    warnings.push({ file, line: null, key: `services.klatch-activation.${unset}`, sentence });
  }
  warnings.push(...incompleteSmtpWarnings(settings, file));
  if (settings['delivery.per-host'] > settings['delivery.in-flight']) {
    const sentence = 'is more than delivery.in-flight: one host can take all of it';
    warnings.push({ file, line: null, key: 'delivery.per-host', sentence });
  }
  if (isReadableByOthers(file)) {
    warnings.push({ file, line: null, key: '', sentence: 'can be read by every user of this machine: chmod 0640' });
  }
  return warnings;
}

/** Warnings about settings of the mail server that are incomplete, so that no codes are sent by mail. */
function incompleteSmtpWarnings(settings: Settings, file: string): ConfigProblem[] {
  const isSet = (name: 'host' | 'from' | 'user' | 'password' | 'template'): boolean =>
    settings[`services.smtp.${name}`] !== null;
  const lacking = (name: string, sentence: string): ConfigProblem[] => [
    { file, line: null, key: `services.smtp.${name}`, sentence },
  ];
  const otherSetKey = (['from', 'user', 'password', 'template'] as const).find(isSet);
  if (!isSet('host')) {
    return otherSetKey === undefined
      ? []
      : lacking('host', `is not set beside ${otherSetKey}: no activation code will be sent by mail`);
  }
  if (!isSet('from')) return lacking('from', 'is not set beside host: no activation code will be sent by mail');
  if (isSet('password') && !isSet('user'))
    return lacking('user', 'is not set beside password: the server will not log in');
  if (isSet('user') && !isSet('password'))
    return lacking('password', 'is not set beside user: the login will be refused');
  return [];
}
