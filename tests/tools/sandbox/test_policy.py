"""What stays as it is in the workspace: whatever names programs that somebody else would run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.loop import until
from tests.tools.sandbox.conftest import Run
from trunkline.models.credentials import without_credentials
from trunkline.tools.bash import BashTool
from trunkline.tools.sandbox import policy
from trunkline.tools.sandbox.policy import nested_repositories, walls
from trunkline.tools.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.process

WHO = "-c user.name=a -c user.email=a@example.com"


def git(*words: str, cwd: Path) -> None:
    subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True)


def shell(command: str, cwd: Path) -> None:
    subprocess.run(command, shell=True, cwd=cwd, check=True)


@pytest.fixture
def repository(workspace: Path) -> Path:
    git("init", "-q", cwd=workspace)
    return workspace


def text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


class TestGit:
    async def test_one_can_commit(self, run: Run, repository: Path) -> None:
        output = await run(
            f"echo x > file && git add -A && git {WHO} commit -qm one && git switch -qc other && git log"
        )
        assert output.status == "success", output.text

    @pytest.mark.parametrize(
        "command",
        [
            "echo x >> .git/config",
            "git config core.hooksPath /evil",
            "git config --add core.fsmonitor evil",
            "echo x > .git/hooks/pre-commit",
            "rm -rf .git/hooks",
            "mv .git/hooks .git/old",
            "mv .git/config .git/old",
            "mv .git .old",
            "rm .git/config",
            "chmod +x .git/hooks/pre-commit.sample",
            "ln -sf /evil .git/config",
            "ln .git/config other && echo x >> other",
        ],
    )
    async def test_its_hooks_and_its_configuration_are_read_only(
        self, run: Run, repository: Path, command: str
    ) -> None:
        before = text(repository / ".git/config")
        output = await run(command)
        assert output.status == "error", output.text
        assert "The sandbox " in output.text
        assert text(repository / ".git/config") == before
        assert not (repository / ".git/hooks/pre-commit").exists()

    async def test_hooks_that_are_missing_cannot_be_made(self, run: Run, repository: Path) -> None:
        shutil.rmtree(repository / ".git/hooks")
        assert (await run("mkdir -p .git/hooks && echo x > .git/hooks/pre-commit")).status == "error"

    @pytest.mark.parametrize("command", ["echo /evil > .git/commondir", "rm .git/commondir", "mv .git/commondir x"])
    async def test_a_common_directory_is_not_planted(
        self, bash: BashTool, run: Run, repository: Path, command: str
    ) -> None:
        """With it git would read its configuration elsewhere."""
        assert (await run(command)).status == "error"
        git("status", cwd=repository)
        assert text(repository / ".git/commondir") == ".\n"
        await bash.close()
        assert not (repository / ".git/commondir").exists()

    async def test_not_by_a_command_in_the_background_either(self, bash: BashTool, run: Run, repository: Path) -> None:
        plant = "while :; do echo /evil > .git/commondir && touch planted; touch tried; done"
        await bash.run({"command": plant, "run_in_background": True}, lambda line: None)
        await until((repository / "tried").exists)
        assert (await run("true")).status == "success"
        (repository / "tried").unlink()
        await until((repository / "tried").exists)
        assert text(repository / ".git/commondir") == ".\n"
        await bash.close()
        assert not (repository / "planted").exists()
        assert not (repository / ".git/commondir").exists()

    async def test_git_works_as_ever_with_what_keeps_it_out(self, run: Run, repository: Path, tmp_path: Path) -> None:
        git("init", "-q", str(tmp_path / "module"), cwd=tmp_path)
        git(*WHO.split(), "commit", "-qm", "one", "--allow-empty", cwd=tmp_path / "module")
        allow = ("-c", "protocol.file.allow=always")
        git(*allow, "submodule", "--quiet", "add", str(tmp_path / "module"), "module", cwd=repository)
        output = await run(
            f"set -e; git {WHO} commit -qam one; git -C module rev-parse --show-toplevel; git submodule status; "
            f"git {WHO} -C module commit -qm two --allow-empty; git worktree list; git status --short; git fsck"
        )
        assert output.status == "success", output.text
        assert f"{repository}/module\n" in output.text
        assert f"{repository} " in output.text
        assert " M module" in output.text

    async def test_one_whose_files_are_elsewhere_is_not_written_to(self, run: Run, repository: Path) -> None:
        """It would not be heard that they are, and the directory of the repository be taken for them."""
        (repository / "files").mkdir()
        git("config", "core.worktree", "../files", cwd=repository)
        assert (await run("touch .git/index.lock")).status == "error"
        assert not (repository / ".git/commondir").exists()

    async def test_worktrees_get_no_configuration(self, run: Run, repository: Path) -> None:
        git("config", "extensions.worktreeConfig", "true", cwd=repository)
        assert (await run("git config --worktree core.hooksPath /evil")).status == "error"
        assert "evil" not in text(repository / ".git/config.worktree")

    async def test_the_file_of_a_worktree_stays(self, run: Run, workspace: Path, tmp_path: Path) -> None:
        main = tmp_path / "main"
        main.mkdir()
        git("init", "-q", cwd=main)
        git(*WHO.split(), "commit", "-qm", "one", "--allow-empty", cwd=main)
        git("worktree", "add", "-q", str(workspace), cwd=main)
        before = text(workspace / ".git")
        assert (await run("echo 'gitdir: /evil' > .git")).status == "error"
        assert (await run("rm -f .git")).status == "error"
        assert text(workspace / ".git") == before

    async def test_repositories_below_are_walled_too(self, workspace: Path) -> None:
        (workspace / "a/b").mkdir(parents=True)
        git("init", "-q", cwd=workspace / "a/b")
        bash = BashTool(str(workspace), sandbox=Sandbox(str(workspace), clean=without_credentials))
        try:
            output = await bash.run({"command": "echo x > a/b/.git/hooks/pre-commit"}, lambda line: None)
        finally:
            await bash.close()
        assert output.status == "error"

    def test_hooks_of_modules_are_found(self, repository: Path) -> None:
        module = repository / ".git/modules/libs/one"
        (module / "objects").mkdir(parents=True)
        (module / "HEAD").touch()
        found = walls(str(repository))
        assert str(module / "hooks") in found.read
        assert str(module / "config") in found.read

    def test_a_repository_with_links_for_hooks_is_not_written_to_at_all(self, repository: Path) -> None:
        shell("rm -r .git/hooks; mkdir h; ln -s ../h .git/hooks", cwd=repository)
        assert walls(str(repository)).read == (str(repository / ".git"), str(repository / "h"))

    @pytest.mark.parametrize(
        ("prepare", "command"),
        [
            ("mv .git/config cfg; ln -s ../cfg .git/config", "echo x >> .git/config"),
            ("rm -r .git/hooks; mkdir h; ln -s ../h .git/hooks", "echo x > h/pre-commit"),
            ("mkdir s; touch s/pre; ln -s ../../s/pre .git/hooks/pre-commit", "echo x >> .git/hooks/pre-commit"),
            ("mkdir h s; touch s/pre; ln -s ../s/pre h/; git config core.hooksPath h", "echo x >> s/pre"),
            ("mv .git real; ln -s real .git; mv real/config cfg; ln -s ../cfg real/config", "echo x >> cfg"),
        ],
    )
    async def test_what_links_for_hooks_and_configuration_lead_to_stays(
        self, run: Run, repository: Path, prepare: str, command: str
    ) -> None:
        shell(prepare, cwd=repository)
        output = await run(command)
        assert output.status == "error"
        assert "The sandbox was why" in output.text

    async def test_a_file_that_an_included_one_includes_stays(self, run: Run, repository: Path) -> None:
        (repository / "one.cfg").write_text("[include]\n\tpath = two.cfg\n\tpath = one.cfg\n")
        (repository / "two.cfg").write_text("[core]\n\thooksPath = h\n")
        (repository / "h").mkdir()
        git("config", "include.path", "../one.cfg", cwd=repository)
        for command in ("echo x >> two.cfg", "echo x > h/pre-commit"):
            assert (await run(command)).status == "error", command

    def test_nothing_can_be_written_where_more_files_are_included_than_are_read(
        self, repository: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(policy, "MOST_INCLUDED", 3)
        (repository / ".git/config").write_text("".join(f"[include]\npath = {number}\n" for number in range(3)))
        assert not walls(str(repository)).whole
        (repository / ".git/config").write_text("".join(f"[include]\npath = {number}\n" for number in range(9)))
        assert walls(str(repository)).whole

    async def test_a_repository_that_a_file_names_is_walled_too(self, run: Run, workspace: Path) -> None:
        (workspace / "kept").mkdir()
        git("init", "-q", "--separate-git-dir", "kept/one", "a", cwd=workspace)
        for command in ("echo x >> kept/one/config", "echo x > kept/one/hooks/pre-commit", "mv kept away"):
            assert (await run(command)).status == "error", command
        assert (await run(f"cd a && touch f && git add f && git {WHO} commit -qm one")).status == "success"

    async def test_hooks_stay_in_all_worktrees_if_each_has_its_own(self, run: Run, workspace: Path) -> None:
        git("init", "-q", "main", cwd=workspace)
        git(*WHO.split(), "commit", "-q", "--allow-empty", "-m", "one", cwd=workspace / "main")
        git("worktree", "add", "-q", "../other", cwd=workspace / "main")
        git("config", "core.hooksPath", "h", cwd=workspace / "main")
        for place in ("main", "other"):
            (workspace / place / "h").mkdir()
        for place in ("main", "other"):
            assert (await run(f"echo x > {place}/h/pre-commit")).status == "error", place

    def test_a_repository_outside_that_a_file_names_gets_nothing(self, workspace: Path, tmp_path: Path) -> None:
        git("init", "-q", "--separate-git-dir", str(tmp_path / "kept"), ".", cwd=workspace)
        found = walls(str(workspace))
        assert (found.read, found.make, found.point) == ((str(workspace / ".git"),), (), ())

    async def test_other_names_of_hooks_and_of_the_configuration_stay(self, run: Run, repository: Path) -> None:
        (repository / "scripts").mkdir()
        (repository / "scripts/check").write_text("true\n")
        os.link(repository / "scripts/check", repository / ".git/hooks/pre-commit")
        os.link(repository / ".git/config", repository / "other")
        for command in ("echo x >> scripts/check", "echo x >> other", "mv scripts away"):
            assert (await run(command)).status == "error", command
        assert (await run("echo x > scripts/file")).status == "success"

    async def test_hooks_that_a_repository_outside_names_in_a_worktree_stay(
        self, run: Run, workspace: Path, tmp_path: Path
    ) -> None:
        git("init", "-q", "main", cwd=tmp_path)
        git(*WHO.split(), "commit", "-q", "--allow-empty", "-m", "one", cwd=tmp_path / "main")
        git("config", "core.hooksPath", "h", cwd=tmp_path / "main")
        git("worktree", "add", "-q", str(workspace), cwd=tmp_path / "main")
        (workspace / "h").mkdir()
        assert (await run("echo x > h/pre-commit")).status == "error"
        assert (await run("echo x > file")).status == "success"

    async def test_hooks_that_a_repository_around_the_workspace_names_stay(
        self, run: Run, workspace: Path, tmp_path: Path
    ) -> None:
        git("init", "-q", cwd=tmp_path)
        git("config", "core.hooksPath", "workspace/h", cwd=tmp_path)
        assert (await run("mkdir -p h && echo x > h/pre-commit")).status == "error"
        assert (await run("echo x > file")).status == "success"

    @pytest.mark.parametrize("place", ["h", "{workspace}/a/h"])
    async def test_hooks_that_the_users_own_configuration_names_stay(
        self, run: Run, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        shared, own = workspace / "shared.cfg", tmp_path / "gitconfig"
        own.write_text(f"[include]\npath = {shared}\n")
        shared.write_text(f"[core]\nhooksPath = {place.format(workspace=workspace)}\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
        git("init", "-q", "a", cwd=workspace)
        assert (await run("mkdir -p a/h && echo x > a/h/pre-commit")).status == "error"
        assert (await run("echo x >> shared.cfg")).status == "error"
        assert (await run("echo x > a/file")).status == "success"

    def test_repositories_are_looked_for_the_nearest_first(self, workspace: Path) -> None:
        for place in ("one", "a/two", "a/b/c/d/e/three", "node_modules/four", "a/b/.git/objects/five"):
            (workspace / place / ".git").mkdir(parents=True)
        found = [Path(path).parent.name for path in nested_repositories(str(workspace))]
        assert sorted(found) == ["b", "one", "three", "two"]
        assert found[0] == "one"
        # The workspace, and the two that are right below it.
        assert nested_repositories(str(workspace), 3) == [str(workspace / "one/.git")]

    async def test_one_that_the_user_has_made_since_is_walled_too(self, run: Run, workspace: Path) -> None:
        await run("true")
        (workspace / "a").mkdir()
        git("init", "-q", cwd=workspace / "a")
        assert (await run("echo x >> a/.git/config")).status == "error"

    async def test_hooks_that_are_elsewhere_and_files_of_the_configuration_stay(
        self, run: Run, repository: Path
    ) -> None:
        (repository / "my hooks").mkdir()
        (repository / "shared.cfg").touch()
        git("config", "core.hooksPath", "my hooks", cwd=repository)
        git("config", "include.path", "../shared.cfg", cwd=repository)
        assert (await run("echo x > 'my hooks/pre-commit'")).status == "error"
        assert (await run("echo x >> shared.cfg")).status == "error"
        assert (await run("mv 'my hooks' away")).status == "error"

    async def test_a_link_in_a_repository_makes_no_file_outside(
        self, run: Run, repository: Path, tmp_path: Path
    ) -> None:
        output = await run(
            "mkdir -p .git/modules/e/objects .git/modules/e/hooks && touch .git/modules/e/HEAD && "
            f"ln -s {tmp_path}/planted .git/modules/e/config"
        )
        assert output.status == "success"
        assert (await run("true")).status == "success"
        assert not (tmp_path / "planted").exists()

    async def test_a_pipe_in_a_repository_is_not_waited_for(self, run: Run, repository: Path) -> None:
        make = "mkdir -p .git/modules/e/objects && touch .git/modules/e/HEAD && mkfifo .git/modules/e/config"
        assert (await run(make)).status == "success"
        assert (await run("true")).status == "success"

    async def test_what_is_too_much_to_tell_apart_cannot_be_written_at_all(
        self, run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(policy, "MOST_PARTS", 2)
        for name in ("a", "b", "c"):
            (repository / ".git/modules" / name / "objects").mkdir(parents=True)
            (repository / ".git/modules" / name / "HEAD").touch()
        touch = "for module in .git/modules/*; do touch $module/index && echo DONE; done"
        # The repository is one part, and one of its modules the other.
        assert (await run(touch)).text.count("DONE") == 1
        monkeypatch.setattr(policy, "NESTED_DIRECTORIES", 2)
        assert "DONE" not in (await run(touch)).text

    async def test_hooks_that_are_named_and_not_there_cannot_be_made(
        self, bash: BashTool, run: Run, repository: Path
    ) -> None:
        git("config", "core.hooksPath", "tools/hooks", cwd=repository)
        git("config", "include.path", "../shared.cfg", cwd=repository)
        assert (await run("mkdir -p tools/hooks && touch tools/hooks/pre-commit")).status == "error"
        assert (await run("echo x > shared.cfg")).status == "error"
        await bash.close()
        assert not (repository / "tools").exists()
        assert not (repository / "shared.cfg").exists()


class TestWay:
    """What leads to something that stays, stays too."""

    @pytest.fixture
    def below(self, workspace: Path) -> Path:
        (workspace / "a/b").mkdir(parents=True)
        git("init", "-q", cwd=workspace / "a/b")
        return workspace / "a/b"

    @pytest.mark.parametrize("command", ["mv a/b gone", "mv a gone", "rm -r a/b", "mkdir c && mv -T c a/b"])
    async def test_a_repository_below_is_not_moved_away(self, run: Run, below: Path, command: str) -> None:
        assert (await run(command)).status == "error"
        assert (below / ".git/config").exists()

    async def test_nor_hidden_behind_many_directories(self, run: Run, below: Path, workspace: Path) -> None:
        await run("for i in $(seq 150); do mkdir -p d$i/e; done; mv a/b d150/e/x")
        await run("echo evil > d150/e/x/.git/hooks/pre-commit; mv d150/e/x a/b")
        assert not (below / ".git/hooks/pre-commit").exists()

    async def test_files_around_it_are_everybodys(self, run: Run, below: Path) -> None:
        output = await run(
            f"echo x > a/b/f && mv a/b/f a/g && cd a/b && touch h && git add -A && git {WHO} commit -qm one && rm ../g"
        )
        assert output.status == "success", output.text

    async def test_nothing_outside_is_removed_through_a_link(
        self, bash: BashTool, run: Run, workspace: Path, below: Path, tmp_path: Path
    ) -> None:
        """One that a command has put in the place of a repository which the user has moved meanwhile."""
        assert (await run("true")).status == "success"
        os.rename(below, workspace / "moved")
        other = tmp_path / "other"
        other.mkdir()
        (other / "commondir").write_text(".\n")
        assert (await run(f"mkdir a/b && ln -s {other} a/b/.git")).status == "success"
        await bash.close()
        assert (other / "commondir").exists()

    async def test_directories_of_hooks_and_of_modules_stay(self, run: Run, repository: Path) -> None:
        for place in ("tools/hooks", ".git/modules/libs/one/objects", ".git/worktrees/w"):
            (repository / place).mkdir(parents=True)
        (repository / ".git/modules/libs/one/HEAD").touch()
        (repository / ".git/worktrees/w/commondir").touch()
        git("config", "core.hooksPath", "tools/hooks", cwd=repository)
        for place in ("tools", ".git/modules", ".git/modules/libs", ".git/modules/libs/one", ".git/worktrees/w"):
            assert (await run(f"mv {place} moved")).status == "error", place

    async def test_a_link_stays_and_what_it_leads_to(self, run: Run, repository: Path) -> None:
        (repository / "shared/hooks").mkdir(parents=True)
        (repository / "hooks").symlink_to("shared/hooks")
        (repository / ".envrc").symlink_to("shared/env")
        (repository / "shared/env").touch()
        git("config", "core.hooksPath", "hooks", cwd=repository)
        for command in (
            "rm hooks",
            "mv hooks x",
            "ln -sfn /evil hooks",
            "mv shared x",
            "touch hooks/pre-commit",
            "rm .envrc",
            "echo x > .envrc",
            "echo x > shared/env",
        ):
            assert (await run(command)).status == "error", command
        assert (await run("cat .envrc && ls hooks/ && touch shared/file")).status == "success"

    async def test_a_link_out_of_the_workspace_stays(self, run: Run, workspace: Path, tmp_path: Path) -> None:
        (tmp_path / "env").write_text("mine\n")
        (workspace / ".envrc").symlink_to(tmp_path / "env")
        assert (await run("rm -f .envrc; echo x > .envrc")).status == "error"
        assert "mine" in (await run("cat .envrc")).text

    def test_links_in_a_ring_are_not_followed_for_ever(self, workspace: Path) -> None:
        (workspace / ".envrc").symlink_to("b")
        (workspace / "b").symlink_to(".envrc")
        assert walls(str(workspace)).read == (str(workspace / ".envrc"), str(workspace / "b"))

    def test_what_lies_in_something_that_stays_needs_no_wall(self, workspace: Path) -> None:
        (workspace / ".venv/lib/trunkline").mkdir(parents=True)
        found = walls(str(workspace), ours=[str(workspace / ".venv"), str(workspace / ".venv/lib/trunkline")])
        assert (found.keep, found.read) == ((), (str(workspace / ".venv"),))

    async def test_where_there_is_too_much_of_it_nothing_can_be_written(
        self, run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(policy, "MOST_WALLS", 3)
        for number in range(4):
            (workspace / f"{number}.pth").touch()
        output = await run('touch file || echo x > "$TMPDIR/x" && exit 1')
        assert "than the sandbox tells apart" in output.text
        assert not (workspace / "file").exists()
        (workspace / "0.pth").unlink()
        assert (await run("touch file")).status == "success"


class TestPlaceholders:
    async def test_one_that_a_killed_agent_has_left_goes_with_the_next(
        self, bash: BashTool, run: Run, repository: Path
    ) -> None:
        (repository / ".git/commondir").write_text(".\n")
        assert (await run("echo /evil > .git/commondir")).status == "error"
        await bash.close()
        assert not (repository / ".git/commondir").exists()

    async def test_one_that_says_something_else_stays(self, bash: BashTool, run: Run, repository: Path) -> None:
        (repository / ".git/commondir").write_text("../.git\n")
        assert (await run("echo /evil > .git/commondir")).status == "error"
        await bash.close()
        assert text(repository / ".git/commondir") == "../.git\n"

    async def test_the_last_session_takes_them_away(self, bash: BashTool, run: Run, repository: Path) -> None:
        """What is taken away outside is taken away in every sandbox."""
        other = BashTool(str(repository), sandbox=Sandbox(str(repository)))
        await other.run({"command": "true"}, lambda line: None)
        assert (await run("true")).status == "success"
        await other.close()
        assert (repository / ".git/commondir").exists()
        await bash.close()
        assert not (repository / ".git/commondir").exists()

    async def test_a_name_that_is_reserved_is_given_to_nothing(self, workspace: Path) -> None:
        bash = BashTool(str(workspace), sandbox=Sandbox(str(workspace), reserved=["trunkline.toml", ".trunkline"]))
        try:
            for command in (
                "echo x > trunkline.toml",
                "rmdir trunkline.toml",
                "mv trunkline.toml x",
                "touch x && mv -T x trunkline.toml",
                "mkdir -p .trunkline/skills",
            ):
                output = await bash.run({"command": command}, lambda line: None)
                assert output.status == "error", command
                assert "The sandbox " in output.text, output.text
        finally:
            await bash.close()
        assert not (workspace / "trunkline.toml").exists()
        assert not (workspace / ".trunkline").exists()


class TestOtherFiles:
    @pytest.mark.parametrize("name", ["trunkline.toml", ".envrc", ".mcp.json", ".pre-commit-config.yaml"])
    async def test_files_that_make_programs_run_stay(self, run: Run, workspace: Path, name: str) -> None:
        (workspace / name).write_text("mine\n")
        for command in (f"echo theirs > {name}", f"rm -f {name}", f"mv {name} away", f"chmod 777 {name}"):
            assert (await run(command)).status == "error"
        assert text(workspace / name) == "mine\n"

    async def test_so_do_directories_of_editors(self, run: Run, workspace: Path) -> None:
        (workspace / ".vscode").mkdir()
        assert (await run("echo x > .vscode/tasks.json")).status == "error"
        assert (await run("mv .vscode old")).status == "error"

    async def test_where_the_workspace_is_somebody_s_home_what_starts_there_stays(
        self, run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = workspace / "ada"
        (home / ".config/autostart").mkdir(parents=True)
        (home / ".bashrc").touch()
        monkeypatch.setenv("HOME", str(home))
        assert (await run("echo x > ada/.config/autostart/evil.desktop")).status == "error"
        assert (await run("echo x >> ada/.bashrc")).status == "error"
        assert (await run("echo x > ada/notes")).status == "success"
        monkeypatch.setenv("HOME", str(workspace))
        (workspace / ".local").mkdir()
        assert (await run("mkdir -p .local/bin")).status == "error"

    async def test_other_files_are_everybodys(self, run: Run, workspace: Path) -> None:
        (workspace / "Makefile").touch()
        (workspace / "node_modules/.bin").mkdir(parents=True)
        assert (await run("echo x > Makefile && touch node_modules/.bin/tool && touch AGENTS.md")).status == "success"

    def test_our_own_directories_are_not_written_to(self, workspace: Path) -> None:
        ours = workspace / ".config/trunkline"
        ours.mkdir(parents=True)
        assert walls(str(workspace), ours=[str(ours), "/nowhere"]).read == (str(ours),)
