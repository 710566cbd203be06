/** How the process ends, one row each; docs/configuration.md shows the same table. */
export const exitCodes = {
  ok: { code: 0, meaning: 'done; `start`: stopped by a signal, every request in flight was finished' },
  configFaults: { code: 1, meaning: 'the configuration has faults' },
  drift: {
    code: 1,
    meaning: '`routes --drift`: a request is answered otherwise than an upstream announces',
  },
  findings: {
    code: 1,
    meaning: '`check --upstreams`: an upstream and the configuration do not fit',
  },
  usage: { code: 2, meaning: 'the command line is not understood' },
  notStarted: {
    code: 3,
    meaning: 'the configuration is right and the gateway could not start (port taken, no permission)',
  },
  crashed: { code: 4, meaning: 'an unexpected error while running; what could be finished was' },
  forced: {
    code: 5,
    meaning: 'stopped before every request in flight was finished: second signal, or drain took too long',
  },
  indexUnread: {
    code: 6,
    meaning: "`routes --drift`, `routes --upstreams`: an upstream's index could not be read",
  },
} as const satisfies Record<string, { readonly code: number; readonly meaning: string }>

/** The name of a row of the table. */
export type ExitReason = keyof typeof exitCodes
