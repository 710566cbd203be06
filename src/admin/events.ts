/** Why the admin side refuses a request. */
export type AccessRefusal =
  | 'credential-missing'
  | 'credential-wrong'
  | 'cross-site'
  | 'host-by-name'
  | 'not-json'
  | 'not-loopback'

/** Events of the admin side, for the log: every write and every refusal. Addresses are those of peers. */
export type AdminEvent =
  | {
      readonly kind: 'admin-purge'
      readonly address: string
      /** `several`: selectors of more than one kind. */
      readonly selector: 'url' | 'tag' | 'prefix' | 'all' | 'several'
      readonly selectors: number
      readonly mode: 'soft' | 'hard'
      readonly dryRun: boolean
      /** Stored responses concerned. */
      readonly entries: number
      /** Targets that are fetched again. */
      readonly warming: number
    }
  | { readonly kind: 'admin-warm'; readonly address: string; readonly warming: number }
  | {
      readonly kind: 'admin-log-level'
      readonly address: string
      readonly to: string
      readonly forMs: number | undefined
    }
  | { readonly kind: 'admin-drain'; readonly address: string }
  | { readonly kind: 'admin-reload'; readonly address: string }
  | { readonly kind: 'admin-refused'; readonly address: string; readonly reason: AccessRefusal }
