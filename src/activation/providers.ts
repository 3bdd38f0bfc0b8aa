import type { Config } from '../config/config.ts';
import { DEFAULT_EMAIL_TEMPLATE, readEmailTemplate } from '../config/email-template.ts';
import { ConfigError } from '../config/problem.ts';
import { Email, parseSender } from './email.ts';
import { Gate } from './gate.ts';
import type { CodeProvider } from './provider.ts';

/**
 * The providers that are set up, in the configuration's order. Throws ConfigError for a sender or a letter that
 * cannot be used; the letter was looked at when the configuration was, and may have changed since.
 */
export function createProviders(config: Config, userAgent: string): readonly CodeProvider[] {
  const { activation, smtp } = config;
  return config.activationProviders.flatMap((name): CodeProvider[] => {
    if (name === 'gate') return activation === null ? [] : [new Gate(activation, { userAgent })];
    if (smtp === null) return [];
    const refuse = (key: string, sentence: string): never => {
      throw new ConfigError([{ file: config.file, line: null, key: `services.smtp.${key}`, sentence }]);
    };
    if (parseSender(smtp.from) === null) refuse('from', 'is not one e-mail address, with or without a name before it');
    const emailTemplate = smtp.template === null ? DEFAULT_EMAIL_TEMPLATE : readEmailTemplate(smtp.template);
    if (typeof emailTemplate === 'string') return refuse('template', emailTemplate);
    return [new Email(smtp, { emailTemplate, projectName: config.projectName })];
  });
}
