"""The settings that count in a folder: of the command, the environment, the repository, the user.

A repository has no say in what is the user's, and what came with one counts once it is trusted.
"""

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.adapters.repository_folder import RepositoryFolder
from herdbook.adapters.user_state import dirs, settings, trust
from herdbook.domain.location.areas import Area
from herdbook.domain.location.settings import (
    DEFAULTS,
    USER_AREAS,
    USER_ONLY_KEYS,
    WORKFLOW_VARIABLE,
    Layer,
    Setting,
    effective_setting,
    size_limit_keys,
)

if TYPE_CHECKING:
    from herdbook.domain.grading import Experience

CLONE_FILE = "config.toml"
"""The file in the git directory with the settings of one clone, for all its worktrees."""


class FolderSettings(RepositoryFolder):
    """A folder with its settings, each read once."""

    @cached_property
    def settings_file(self) -> Path | None:
        """The repository's settings file, if it has one."""
        root = self.paths.worktree
        return None if root is None else settings.repository_file(Path(root))

    @cached_property
    def clone_file(self) -> Path | None:
        """Where this clone's own settings are, for all its worktrees; None outside a repository."""
        state = self.paths.state
        return None if state is None else Path(state, CLONE_FILE)

    @property
    def settings_files(self) -> list[Path]:
        """The settings files that there are in this repository, those with precedence first."""
        own = self.clone_file
        found = [own if own is not None and own.is_file() else None, self.settings_file]
        return [each for each in found if each is not None]

    @cached_property
    def layers(self) -> list[Layer]:
        """All settings, those with precedence first."""
        *earlier, own = self.user_layers
        return [*earlier, *map(self._repository_layer, self.settings_files), own]

    def is_trusted(self, file: Path) -> bool:
        """Whether the user has trusted a settings file of this repository as it is now."""
        return self.facts is not None and trust.is_trusted(file, self.facts.common_dir)

    def _repository_layer(self, file: Path) -> Layer:
        """The settings of a file of the repository, which the user may have trusted as it is."""
        name = f".git/herdbook/{CLONE_FILE}" if file == self.clone_file else ""
        is_trusted = self.is_trusted(file)
        return {
            key: each._replace(of_repository=True, trusted=is_trusted)
            for key, each in settings.from_file(file, self._base, name).items()
        }

    @cached_property
    def ignored_settings(self) -> dict[str, str]:
        """The keys in the repository's files that only the user's own settings may have.

        Each with a sentence about it.
        """
        return {
            key: f"{each.origin} sets {key}, which is ignored: only your own settings may"
            for layer in self.layers
            for key, each in layer.items()
            if each.of_repository and key in {*USER_ONLY_KEYS, *map(str, USER_AREAS)}
        }

    @cached_property
    def user_layers(self) -> list[Layer]:
        """The settings that are the user's own: all but the repository's, which is not read."""
        layers = [
            settings.from_arguments(self.arguments, self._base),
            *settings.from_environment(self.variables, self._base),
        ]
        own = dirs.config_file()
        if not own.is_file():
            return [*layers, {}]
        home = Path.home()
        name = f"~/{own.relative_to(home)}" if own.is_relative_to(home) else str(own)
        return [*layers, settings.from_file(own, str(home), name)]

    @property
    def _base(self) -> str:
        """The folder that paths typed here are relative to."""
        return self.paths.repository or os.path.realpath(self.folder)

    def _layers_of(self, area: Area) -> list[Layer]:
        """The settings that count for an area: a repository has no say in what is the user's."""
        return self.user_layers if area in USER_AREAS else self.layers

    @property
    def workflow_file(self) -> Path | None:
        """The SQLite database whose threads are read until they go on here, if one is named."""
        named = effective_setting(self.layers, str(Area.CHECKPOINTS), "store")
        if named is None or named.origin.rule != settings.SQLITE_RULE:
            return None
        base = self.paths.repository or os.path.realpath(self.folder)
        return settings.workflow_path(self.variables[WORKFLOW_VARIABLE], base)

    def setting(self, key: str) -> Any:
        """The effective value of a setting."""
        layers = self.user_layers if key in USER_ONLY_KEYS else self.layers
        found = effective_setting(layers, key)
        return DEFAULTS[key] if found is None else found.value

    def area_setting(self, area: Area, key: str) -> Any:
        """A setting for an area's store; a repository's settings do not apply to the user's own."""
        found = effective_setting(self._layers_of(area), key)
        return DEFAULTS[key] if found is None else found.value

    def size_limit(self, area: Area) -> int | None:
        """How large the store of an area may grow; None if that is not set."""
        found = self._size_setting(area)
        return None if found is None else int(found.value)

    def _size_setting(self, area: Area) -> Setting | None:
        return effective_setting(self._layers_of(area), *size_limit_keys(area))

    @cached_property
    def experience(self) -> "Experience | None":
        """The experience that successes give; None unless the user has set it."""
        prefix = "experience_"
        keys = [key for key in DEFAULTS if key.startswith(prefix)]
        if all(effective_setting(self.user_layers, key) is None for key in keys):
            return None
        from herdbook.domain.grading import Experience  # noqa: PLC0415

        return Experience(**{key.removeprefix(prefix): self.setting(key) for key in keys})
