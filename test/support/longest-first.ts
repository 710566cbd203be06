import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The files that take longest, the longest first. `.ci/run` writes the list where UPDATE_LONGEST is set. */
export const longest: readonly string[] = JSON.parse(
  readFileSync(new URL('longest-first.json', import.meta.url), 'utf8'),
)

/** In a fresh clone Vitest knows sizes alone: a short file that takes a minute would run last, beside nothing. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const at = longest.indexOf(relative(root, moduleId))
      return at === -1 ? longest.length : at
    }
    const groupOf = ({ project }: TestSpecification): number => project.config.sequence.groupOrder
    const others = await super.sort(files)
    return others.sort((a, b) => groupOf(a) - groupOf(b) || rankOf(a) - rankOf(b))
  }
}
