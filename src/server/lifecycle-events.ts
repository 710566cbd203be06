/** Result of a reload. */
export type ReloadResult = 'applied' | 'unchanged' | 'invalid' | 'restart-needed' | 'failed'

/** Events of the process. */
export type LifecycleEvent =
  | {
      readonly kind: 'reloaded'
      readonly outcome: ReloadResult
      /** Seconds since 1970. */
      readonly atSeconds: number
    }
  /** An uncaught error: the process drains and exits. */
  | { readonly kind: 'process-fault' }
  | {
      readonly kind: 'certificate-in-force'
      /** Seconds since 1970. */
      readonly notAfterSeconds: number
    }
