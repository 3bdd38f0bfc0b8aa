import { callerAddresses, type CallerProgram } from './program.ts';

/** Callers that are commands, or programs that start a command. */
export const scriptPrograms: readonly CallerProgram[] = [
  {
    name: 'curl and cron',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace: 'a script',
        language: 'sh',
        configuration: `curl --fail --silent --show-error --retry 5 \\
  --data-urlencode "subject=Backup of db1" \\
  --data-urlencode "body=No space left on device" \\
  --data-urlencode "severity=critical" \\
  --data-urlencode "url=https://db1.example.org/log" \\
  <address>`,
        fixture: 'generic/level-and-link',
      },
    ],
    remarks: [
      '`--retry` repeats after a 408 and a 503, and waits as `Retry-After` says. An `Idempotency-Key` keeps repeats from posting twice.',
      'Text alone is sent with `curl -d "Backup failed" <address>`, the output of a command with `command | curl --data-binary @- <address>`.',
    ],
  },
  {
    name: 'Monit',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace:
          '/usr/local/bin/klatch-monit, mode 700; in monitrc `if space usage > 90% then exec "/usr/local/bin/klatch-monit"`',
        language: 'sh',
        configuration: `#!/bin/sh
exec /usr/bin/curl --fail --silent --retry 5 \\
  --data-urlencode "title=$MONIT_SERVICE on $MONIT_HOST: $MONIT_EVENT" \\
  --data-urlencode "message=$MONIT_DESCRIPTION" \\
  --data-urlencode "level=warning" \\
  <address>`,
        fixture: 'generic/scripts/monit',
      },
    ],
    remarks: ['`else if succeeded then exec "…"` tells of the recovery; a second script has `level=ok` for it.'],
  },
  {
    name: 'smartd',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace:
          '/usr/local/bin/klatch-smartd, mode 700; in smartd.conf `DEVICESCAN -a -m root -M exec /usr/local/bin/klatch-smartd`',
        language: 'sh',
        configuration: `#!/bin/sh
exec /usr/bin/curl --fail --silent --retry 5 \\
  --data-urlencode "title=$SMARTD_SUBJECT" \\
  --data-urlencode "message=$SMARTD_MESSAGE" \\
  --data-urlencode "level=critical" \\
  <address>`,
        fixture: 'generic/scripts/smartd',
      },
    ],
    remarks: [
      'The script takes the place of the mail. `-M test` before `-M exec` runs it at the start of smartd.',
      '`-M once`, `-M daily` and `-M diminishing` say how often an alert is repeated.',
    ],
  },
  {
    name: 'Nagios',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace: 'commands.cfg; the contact has `service_notification_commands notify-service-by-klatch`',
        language: 'text',
        configuration: `define command {
    command_name  notify-service-by-klatch
    command_line  /usr/bin/curl --fail --silent --retry 5 --data-urlencode 'title=$NOTIFICATIONTYPE$: $SERVICEDESC$ on $HOSTNAME$' --data-urlencode 'message=$SERVICEOUTPUT$' --data-urlencode 'status=$SERVICESTATE$' <address>
}`,
        fixture: 'generic/scripts/nagios',
      },
    ],
    remarks: ['For hosts the macros are `$HOSTOUTPUT$` and `$HOSTSTATE$`, and `host_notification_commands`.'],
  },
  {
    name: 'Icinga 2',
    setups: [
      {
        address: callerAddresses.group,
        configurationPlace: 'conf.d/commands.conf; a Notification of services names the command',
        language: 'text',
        configuration: `object NotificationCommand "klatch-service-notification" {
  command = [
    "/usr/bin/curl", "--fail", "--silent", "--retry", "5",
    "--data-urlencode", "title=$notification.type$: $service.name$ on $host.name$",
    "--data-urlencode", "message=$service.output$",
    "--data-urlencode", "status=$service.state$",
    "<address>"
  ]
}`,
        fixture: 'generic/scripts/icinga',
      },
    ],
    remarks: ['For hosts the macros are `$host.output$` and `$host.state$`.'],
  },
  {
    name: 'Anything else that posts JSON',
    setups: [
      {
        address: callerAddresses.json,
        configurationPlace: 'its field for the URL of a webhook',
        language: 'text',
        configuration: '<address>/json',
        fixture: 'json/nested',
      },
    ],
    remarks: [
      'First try the address without `/json`: objects with `title`, `message`, `url` and `level`, or names like these, are read better.',
    ],
  },
];
