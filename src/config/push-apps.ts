import type { DeviceKind } from '../model/device.ts';
import type { Config } from './config.ts';

/** For each kind of device, the key of the configuration that enables pushes to it. */
export const PUSH_SETTING_KEYS: Readonly<Record<DeviceKind, string>> = {
  google: 'services.google.push.keys',
  apple: 'services.apple.push.keys',
  web: 'services.web-push',
};

type PushServices = Pick<Config, 'googlePush' | 'applePush' | 'webPush'>;

/** The kinds of devices for which pushes are configured. */
export function configuredDeviceKinds({ googlePush, applePush, webPush }: PushServices): readonly DeviceKind[] {
  return [
    ...(googlePush.keys.length > 0 ? (['google'] as const) : []),
    ...(applePush.keys.length > 0 ? (['apple'] as const) : []),
    ...(webPush === null ? [] : (['web'] as const)),
  ];
}

/** The ids of the configured Google projects or Apple bundles, in the order of the configuration. */
export function configuredAppIds(
  { googlePush, applePush }: PushServices,
  kind: Exclude<DeviceKind, 'web'>,
): readonly string[] {
  const idsByKind: Readonly<Record<typeof kind, readonly string[]>> = {
    google: googlePush.keys.map(({ projectId }) => projectId),
    apple: applePush.keys.map(({ bundleId }) => bundleId),
  };
  return idsByKind[kind];
}
