import { execFile } from 'node:child_process'
import { cp, mkdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { execForm, type Instruction, type Stage } from './dockerfile.ts'

/** What an image would hold and do. */
export type BuiltImage = {
  /** Its root folder. */
  readonly root: string
  readonly workdir: string
  readonly env: Readonly<Record<string, string>>
  /** ENTRYPOINT and CMD together. */
  readonly command: readonly string[]
  readonly healthCheck: readonly string[]
}

type Build = {
  root: string
  workdir: string
  env: Record<string, string>
  instructions: readonly Instruction[]
}

/**
 * Runs the steps of a Dockerfile in folders instead of images, with the Node that runs the tests, so no container engine is needed.
 * The base image is ignored.
 */
export async function buildByHand(
  stages: readonly Stage[],
  context: string,
  into: string,
): Promise<BuiltImage> {
  const roots = new Map<string, string>()
  let built: Build | undefined
  for (const stage of stages) {
    const root = join(into, stage.name)
    roots.set(stage.name, root)
    await mkdir(root, { recursive: true })
    built = { root, workdir: '/', env: {}, instructions: stage.instructions }
    for (const instruction of stage.instructions) await carryOut(instruction, built, context, roots)
  }
  if (built === undefined) throw new Error('no stage')
  const last = (name: string): string[] =>
    execForm(built.instructions.findLast((instruction) => instruction.name === name)) ?? []
  return {
    ...built,
    command: [...last('ENTRYPOINT'), ...last('CMD')],
    healthCheck: last('HEALTHCHECK'),
  }
}

async function carryOut(
  instruction: Instruction,
  build: Build,
  context: string,
  roots: ReadonlyMap<string, string>,
): Promise<void> {
  switch (instruction.name) {
    case 'WORKDIR':
      build.workdir = instruction.text
      await mkdir(join(build.root, build.workdir), { recursive: true })
      return
    case 'ENV': {
      const [name = '', value = ''] = instruction.text.split('=')
      build.env[name] = value
      return
    }
    case 'RUN':
      await runStep(instruction.text, join(build.root, build.workdir), build.env)
      return
    case 'COPY':
      await copyStep(instruction, build, roots.get(instruction.flags['from'] ?? '') ?? context)
      return
    default:
      return
  }
}

async function runStep(command: string, cwd: string, env: Readonly<Record<string, string>>): Promise<void> {
  const { PATH = '', HOME = '' } = process.env
  const registry = process.env['npm_config_registry']
  const clean = { PATH, HOME, ...(registry === undefined ? {} : { npm_config_registry: registry }), ...env }
  await promisify(execFile)('/bin/sh', ['-ec', command], { cwd, env: clean }).catch((error: unknown) => {
    // Compilers report on stdout, which the error's own message leaves out.
    throw new Error(`RUN ${command}\n${(error as { stdout?: string }).stdout ?? ''}`, { cause: error })
  })
}

async function copyStep(instruction: Instruction, build: Build, from: string): Promise<void> {
  const destination = join(build.root, build.workdir, instruction.words.at(-1) ?? '')
  for (const source of instruction.words.slice(0, -1)) {
    const path = join(from, source)
    // A folder's content is copied, a file goes into a destination that ends with a slash or is one of several.
    const isFolder = (await stat(path)).isDirectory()
    const intoFolder = !isFolder && (destination.endsWith('/') || instruction.words.length > 2)
    await cp(path, intoFolder ? join(destination, basename(source)) : destination, { recursive: true })
  }
}
