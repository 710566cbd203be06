import type { LifecycleEvent } from '../lifecycle/events.ts'
import type { Families } from './registry.ts'

/** Counts what the process tells of its own life. */
export const createLifecycleObserver =
  (families: Families): ((event: LifecycleEvent) => void) =>
  (event) => {
    switch (event.kind) {
      case 'reloaded': {
        const { outcome, atSeconds } = event
        families.configReloads.series({ outcome }).value += 1
        families.configReloadGood.series({}).value = outcome === 'applied' || outcome === 'unchanged' ? 1 : 0
        families.configReloadTime.series({ outcome }).value = atSeconds
        return
      }
      case 'process-fault':
        families.processFaults.series({}).value += 1
        return
      case 'certificate-in-force':
        families.certificateExpiry.series({}).value = event.notAfterSeconds
        return
      default:
        event satisfies never
    }
  }
